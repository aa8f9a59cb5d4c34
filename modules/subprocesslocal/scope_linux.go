package subprocesslocal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// answerWithin is how long the systemd managers have, together, to make a scope.
const answerWithin = 2 * time.Second

// theScope is the scope that this process is in. A process is moved once, before it has children, so there is one for all
// runtimes.
var theScope = &scope{}

// scope is what came of asking for a scope.
type scope struct {
	mu      sync.Mutex
	asked   bool
	at      place
	manager string
	err     error
}

// enter has a systemd manager make a scope for this process, and returns where it is, and by whose leave.
func (s *scope) enter(id string, log *slog.Logger) (at place, manager string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked {
		s.asked = true
		s.at, s.manager, s.err = makeScope(treePrefix+id+".scope", log)
	}
	return s.at, s.manager, s.err
}

// makeScope asks one manager after the other.
func makeScope(unit string, log *slog.Logger) (at place, name string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	managers := managers()
	if len(managers) == 0 {
		return place{}, "", errors.New("no systemd manager is running")
	}
	var errs []error
	for _, m := range managers {
		err := m.makeScope(ctx, unit)
		if ctx.Err() != nil {
			err = fmt.Errorf("the systemd manager at %s did not answer within %v", m.address, answerWithin)
			log.Warn("commands run without a scope of their own", "error", err)
		}
		if err == nil {
			if at, err = ownPlace(); err == nil && filepath.Base(at.path) == unit {
				return at, m.name, nil
			}
			err = errors.Join(fmt.Errorf("the %s made the scope %s, and did not move this process there", m.name, unit), err)
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return place{}, "", errors.Join(errs...)
}

// manager is a way to a systemd manager.
type manager struct {
	name    string
	address string // as D-Bus writes it
	bus     bool   // it is not the manager itself that listens there
}

// managers lists the ways to try: the user's manager directly, or else through the bus; for root the system's as well.
func managers() []manager {
	run := os.Getenv("XDG_RUNTIME_DIR")
	if run == "" {
		run = filepath.Join("/run/user", strconv.Itoa(os.Geteuid()))
	}
	ways := reach("systemd user manager", filepath.Join(run, "systemd/private"), os.Getenv("DBUS_SESSION_BUS_ADDRESS"), filepath.Join(run, "bus"))
	if os.Geteuid() == 0 {
		ways = append(ways, reach("systemd system manager", "/run/systemd/private", os.Getenv("DBUS_SYSTEM_BUS_ADDRESS"), "/run/dbus/system_bus_socket")...)
	}
	return ways
}

func reach(name, private, address, socket string) []manager {
	if isSocket(private) {
		return []manager{{name, "unix:path=" + escapeAddress(private), false}}
	}
	if address == "" && isSocket(socket) {
		address = "unix:path=" + escapeAddress(socket)
	}
	// Any other address would have the library start a bus.
	if !strings.HasPrefix(address, "unix:") {
		return nil
	}
	return []manager{{name, address, true}}
}

func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeSocket != 0
}

// escapeAddress writes a path as a value in a D-Bus address.
func escapeAddress(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_/.", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	return b.String()
}

// dial opens a connection; the end of ctx closes it.
func (m manager) dial(ctx context.Context) (*godbus.Conn, error) {
	conn, err := godbus.Dial(m.address, godbus.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	// By number: a user may have no name.
	if err := conn.Auth([]godbus.Auth{godbus.AuthExternal(strconv.Itoa(os.Geteuid()))}); err != nil {
		conn.Close()
		return nil, err
	}
	if m.bus {
		if err := conn.Hello(); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return conn, nil
}

// connect opens the two connections that the library wants, one for calls and one for signals, at the same time.
func (m manager) connect(ctx context.Context) (*dbus.Conn, error) {
	var conns [2]*godbus.Conn
	var errs [2]error
	var dialing sync.WaitGroup
	for i := range conns {
		dialing.Go(func() { conns[i], errs[i] = m.dial(ctx) })
	}
	dialing.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		for _, conn := range conns {
			if conn != nil {
				conn.Close()
			}
		}
		return nil, cmp.Or(errs[0], errs[1])
	}
	next := 0
	return dbus.NewConnection(func() (*godbus.Conn, error) {
		next++
		return conns[next-1], nil
	})
}

// makeScope asks m for a delegated scope with this process in it, and waits until it is made.
func (m manager) makeScope(ctx context.Context, unit string) error {
	conn, err := m.connect(ctx)
	if err != nil {
		return fmt.Errorf("%s at %s: %w", m.name, m.address, err)
	}
	defer conn.Close()
	where, err := os.Getwd()
	if err != nil {
		where = "an unknown directory"
	}
	done := make(chan string, 1)
	_, err = conn.StartTransientUnitContext(ctx, unit, "fail", []dbus.Property{
		dbus.PropDescription(fmt.Sprintf("dsh %d and the commands that it runs, started in %s", os.Getpid(), where)),
		// Whoever asks: a pid could be that of another process in the manager's pid namespace.
		dbus.PropPids(0),
		{Name: "Delegate", Value: godbus.MakeVariant(true)},
		{Name: "CollectMode", Value: godbus.MakeVariant("inactive-or-failed")},
	}, done)
	if err != nil {
		return fmt.Errorf("%s at %s: make %s: %w", m.name, m.address, unit, err)
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("%s at %s: make %s: the job's result is %q", m.name, m.address, unit, result)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
