package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"dsh/modules/subprocess"
	"dsh/modules/subprocesslocal"
)

// spawn compares a command that the runtime owns in one kind of range with one that os/exec starts and reads.
func spawn(kind subprocess.RangeKind) func(*bench) (figure, error) {
	return func(b *bench) (f figure, err error) {
		config := subprocesslocal.DefaultConfig()
		config.Range = string(kind)
		r, err := subprocesslocal.New(subprocesslocal.Params{Config: config, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return figure{}, err
		}
		ctx := context.Background()
		if err := r.Runner.Start(ctx); err != nil {
			return figure{}, err
		}
		defer func() { err = errors.Join(err, r.Runner.Stop(ctx)) }()
		path, err := r.Runtime.ResolveExecutable(ctx, "bash")
		if err != nil {
			return figure{}, err
		}
		ours, theirs, ratio, err := paired(150, func() (time.Duration, error) {
			began := time.Now()
			p, err := r.Runtime.Spawn(ctx, subprocess.Spec{
				Path: path, Argv: []string{"bash", "-c", greeting}, Dir: b.dir, Grace: time.Second,
				Stdout: subprocess.Output{Collect: &subprocess.Collect{MaxBytes: 1 << 16}},
				Stderr: subprocess.Output{Inherit: true},
			})
			if err != nil {
				return 0, err
			}
			<-p.Done()
			_, err = p.Outcome()
			return time.Since(began), err
		}, bash)
		return figure{ratio, ms(ours), ms(theirs)}, err
	}
}
