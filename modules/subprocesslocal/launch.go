//go:build unix

package subprocesslocal

import (
	"fmt"
	"os"
	"syscall"

	"dsh/modules/internal/collect"
	"dsh/modules/subprocess"
)

// launch starts the leader of s with its streams connected.
func (rt *local) launch(s subprocess.Spec, path string) (_ *process, err error) {
	p := newProcess(s, rt.hurry)
	// given is what the child gets and this process closes.
	given := make([]int, 0, 3)
	defer func() {
		for _, fd := range given {
			syscall.Close(fd)
		}
		if err != nil {
			p.closeEnds()
		}
	}()
	l := &launch{path: path, argv: s.Argv, env: rt.env.For(s.Env), dir: s.Dir, onThread: s.OnThread}
	l.files = make([]uintptr, 0, 3+len(s.ExtraFiles))

	fd, owned, err := rt.stdin(p)
	if err != nil {
		return nil, err
	}
	if owned {
		given = append(given, int(fd))
	}
	l.files = append(l.files, fd)

	number := rt.commands.Add(1)
	for _, o := range []struct {
		name string
		spec subprocess.Output
		host *os.File
		end  *outputEnd
	}{
		{"stdout", s.Stdout, os.Stdout, &p.stdout},
		{"stderr", s.Stderr, os.Stderr, &p.stderr},
	} {
		if o.spec.Inherit {
			l.files = append(l.files, o.host.Fd())
			continue
		}
		ours, child, err := pipeFrom()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.name, err)
		}
		given = append(given, child)
		l.files = append(l.files, uintptr(child))
		if o.spec.Pipe {
			o.end.pipe = ours
			continue
		}
		c := o.spec.Collect
		o.end.stream = newStream(ours, c.Tee, collect.New(collect.Config{
			MaxBytes: c.MaxBytes, SpillMaxBytes: c.SpillMaxBytes,
			Create: func() (*os.File, error) {
				return rt.files.CreateSpill(fmt.Sprintf("%d-%s-%s.log", number, randomHex(6), o.name))
			},
			Trouble: func(err error) {
				rt.log.Warn("only the end of an output is kept, without a file of the whole",
					"program", path, "stream", o.name, "error", err)
			},
		}))
	}
	for _, f := range s.ExtraFiles {
		l.files = append(l.files, f.Fd())
	}
	if p.members, err = rt.ranges.make(s.Limits); err != nil {
		return nil, err
	}
	if err := p.members.fork(l); err != nil {
		p.members.release()
		return nil, err
	}
	return p, nil
}

// stdin returns the descriptor that the child reads from, and whether it is for us to close.
func (rt *local) stdin(p *process) (fd uintptr, owned bool, err error) {
	in := p.spec.Stdin
	if f, ok := in.Reader.(*os.File); ok {
		return f.Fd(), false, nil
	}
	if !in.Pipe && in.Reader == nil && in.Bytes == nil {
		return rt.null.Fd(), false, nil
	}
	ours, child, err := pipeTo()
	if err != nil {
		return 0, false, fmt.Errorf("stdin: %w", err)
	}
	p.stdin = ours
	return uintptr(child), true, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
