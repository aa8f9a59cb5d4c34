package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"dsh/compose"
	"dsh/modules/session"
	"dsh/modules/tools"
)

func (a *app) sessionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "read the logs of sessions",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list := &cobra.Command{
		Use:   "list",
		Short: "list the sessions, the last one changed first",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.sessions(func(ctx context.Context, store session.Store) error { return a.listSessions(ctx, store) })
		},
	}
	show := &cobra.Command{
		Use:   "show ID",
		Short: "print a session for people",
		Args:  takes(1, "the id of one session"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.sessions(func(ctx context.Context, store session.Store) error {
				log, err := store.Read(ctx, args[0])
				if err != nil {
					return err
				}
				return log.WriteText(a.stdout)
			})
		},
	}
	cmd.AddCommand(list, show)
	return cmd
}

// sessions runs body with the store of the composition. Of all rows only those that the store needs are started.
func (a *app) sessions(body func(context.Context, session.Store) error) error {
	c, err := a.compose()
	if err != nil {
		return err
	}
	plan, err := c.plan()
	if err != nil {
		return err
	}
	only, ok := plan.Only(session.Key.Type())
	if !ok {
		return &runError{errors.New("dsh session needs session-persistence (session.Store), which no enabled row provides")}
	}
	interrupt, f := a.host(
		func() (*compose.Plan, error) { return only, nil },
		func(ctx context.Context, running *compose.Running) *failure {
			store, _ := compose.Value[session.Store](running)
			if err := body(ctx, store); err != nil {
				return &failure{Code: tools.CodeInternal, Message: err.Error()}
			}
			return nil
		})
	if f != nil {
		a.say(f)
		return &exitError{cmp.Or(interrupt, exitFailed)}
	}
	if interrupt != 0 {
		return &exitError{interrupt}
	}
	return nil
}

func (a *app) listSessions(ctx context.Context, store session.Store) error {
	all, err := store.List(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, s := range all {
		what := s.Task
		if s.Err != nil {
			what = "damaged: " + s.Err.Error()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.ID, s.ChangedAt.Local().Format("2006-01-02 15:04"), s.CWD, oneLine(what))
	}
	return w.Flush()
}
