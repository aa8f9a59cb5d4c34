package sandboxlocal

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"dsh/modules/sandbox"
	"dsh/modules/subprocess"
)

// layout is bubblewrap's arguments for one policy, but for what differs from call to call.
type layout struct {
	args []string
	// writable are the directories that commands may write to, as they see them, and what they are outside.
	writable map[string]string
	// opened are directories on the way to a mount point, which are mount points themselves.
	opened map[string]bool
	// shown are directories that are visible although something above them is hidden.
	shown []string
	// temp is what /tmp is outside, when it is a directory of the session's.
	temp string
	// made is what the workspace and the temporary directory were when the arguments were made.
	made identity
}

const (
	tmp    = "/tmp"
	run    = "/run"
	shm    = "/dev/shm"
	devnul = "/dev/null"
)

// arguments returns bubblewrap's arguments for r, up to the status descriptor.
func (b *bwrap) arguments(r sandbox.Request) ([]string, error) {
	l, err := b.layout(r.Policy)
	if err != nil {
		return nil, err
	}
	if err := l.enterable(r.Spec.Dir); err != nil {
		return nil, err
	}
	args := append(slices.Clone(l.args), l.masks(&b.seen)...)
	loader := loaderEnv(r.Spec.Env)
	for _, name := range slices.Sorted(maps.Keys(loader)) {
		args = append(args, "--setenv", name, loader[name])
	}
	return append(args, "--chdir", r.Spec.Dir, "--remount-ro", run), nil
}

// layout returns the arguments for p, made anew when the directories that they name are others than before.
func (b *bwrap) layout(p sandbox.Policy) (*layout, error) {
	temp := ""
	if p.Mode == sandbox.WorkspaceWrite && p.WorkspaceRoot != tmp {
		var err error
		if temp, err = b.temp(p); err != nil {
			return nil, err
		}
	}
	now := b.identify(p.WorkspaceRoot, temp)
	if l := b.profiles.of(p); l != nil && l.made == now {
		return l, nil
	}
	l, err := b.newLayout(p, temp)
	if err != nil {
		return nil, err
	}
	l.made = now
	b.profiles.keep(p, l)
	return l, nil
}

func (b *bwrap) newLayout(p sandbox.Policy, temp string) (*layout, error) {
	l := &layout{temp: temp, writable: map[string]string{}, opened: map[string]bool{}}
	writes := p.Mode == sandbox.WorkspaceWrite
	protected, err := b.protected(p)
	if err != nil {
		return nil, err
	}
	l.add("--ro-bind", "/", "/", "--dev", "/dev")
	for _, d := range b.config.Devices {
		l.add("--dev-bind-try", d, d)
	}
	l.add("--tmpfs", shm)
	if within(p.WorkspaceRoot, shm) {
		l.add(bind(writes), p.WorkspaceRoot, p.WorkspaceRoot) // its mount point cannot be made later
	}
	l.add("--remount-ro", "/dev", "--unshare-pid", "--unshare-ipc")
	if b.config.Network == NetworkNone {
		l.add("--unshare-net")
	}
	l.add("--proc", "/proc")
	l.add(privileges()...)
	l.add("--tmpfs", run)
	l.add(keptInRun()...)

	if writes {
		if temp != "" {
			l.writable[tmp] = temp
			l.add("--bind", temp, tmp)
			if err := l.open(tmp, temp, p.WorkspaceRoot); err != nil {
				return nil, err
			}
		}
		l.writable[p.WorkspaceRoot] = p.WorkspaceRoot
		l.add("--bind", p.WorkspaceRoot, p.WorkspaceRoot)
	} else if within(p.WorkspaceRoot, run) {
		l.add("--ro-bind", p.WorkspaceRoot, p.WorkspaceRoot)
	}
	l.shown = append(l.shown, p.WorkspaceRoot)
	for _, o := range protected {
		dir := o.dir
		inWorkspace, hidden := writes && within(dir, p.WorkspaceRoot), temp != "" && within(dir, tmp)
		if !inWorkspace && !within(dir, run) && !hidden {
			continue // the root is read-only
		}
		if o.spare && hidden && !inWorkspace && !within(temp, dir) {
			continue // other hosts' files, which come and go, and are not to be seen here anyway
		}
		for root, outside := range l.writable {
			if err := l.open(root, outside, dir); err != nil {
				return nil, err
			}
		}
		l.add("--ro-bind", dir, dir)
		l.shown = append(l.shown, dir)
	}
	if writes {
		l.add("--setenv", "TMPDIR", tmp)
	} else {
		l.add("--setenv", "TMPDIR", shm)
	}
	return l, nil
}

func bind(writes bool) string {
	if writes {
		return "--bind"
	}
	return "--ro-bind"
}

func (l *layout) add(args ...string) { l.args = append(l.args, args...) }

// open makes target a safe mount point, when it is under the writable directory root: each directory on the way, and the
// target itself, is there, and none is a symbolic link, which would lead the mount elsewhere. Those on the way become
// mount points themselves, so that no command can rename one and have the path lead past what is mounted under it.
func (l *layout) open(root, outside, target string) error {
	if !within(target, root) || target == root {
		return nil
	}
	for other := range l.writable {
		if other != root && within(other, root) && within(target, other) {
			return nil // under a directory that is mounted over this one
		}
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(target, root), "/")
	if err := makeDirs(outside, rel); err != nil {
		return &refusalError{reason: fmt.Sprintf("cannot mount over %s safely: %v", target, err)}
	}
	for i, c := range rel {
		dir := filepath.Join(root, rel[:i])
		if c != '/' || l.opened[dir] {
			continue // a second mount would hide what has been mounted under the first
		}
		l.opened[dir] = true
		l.add("--bind", filepath.Join(outside, rel[:i]), dir)
	}
	return nil
}

// makeDirs makes the directories of rel under dir that are missing. A symbolic link on the way is an error.
func makeDirs(dir, rel string) error {
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer func() { unix.Close(at) }()
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	}
	for name := range strings.SplitSeq(rel, "/") {
		if err := unix.Mkdirat(at, name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return &fs.PathError{Op: "mkdir", Path: filepath.Join(dir, rel), Err: err}
		}
		next, err := unix.Openat2(at, name, &how)
		if err != nil {
			return &fs.PathError{Op: "open", Path: filepath.Join(dir, rel), Err: err}
		}
		unix.Close(at)
		at = next
	}
	return nil
}

var errHidden = errors.New("it is not visible inside of the sandbox")

// enterable returns why a command cannot be started in dir.
func (l *layout) enterable(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	shows := func() bool {
		return slices.ContainsFunc(l.shown, func(s string) bool { return within(real, s) })
	}
	outside := real
	switch {
	case err == nil && shows():
	case l.temp != "" && (err == nil && within(real, tmp) || err != nil && within(filepath.Clean(dir), tmp)):
		outside, err = filepath.Join(l.temp, strings.TrimPrefix(filepath.Clean(dir), tmp)), nil
	case err == nil && (within(real, run) || within(real, "/dev") || within(real, "/proc")):
		if real != run && real != "/dev" && real != shm && real != "/proc" {
			err = errHidden
		}
	}
	if err == nil {
		var info fs.FileInfo
		if info, err = os.Stat(outside); err == nil && !info.IsDir() {
			err = unix.ENOTDIR
		}
	}
	if err == nil {
		err = unix.Faccessat(unix.AT_FDCWD, outside, unix.X_OK, unix.AT_EACCESS)
	}
	if err == nil {
		return nil
	}
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		err = p.Err
	}
	return &subprocess.DirError{Dir: dir, Err: err}
}

// within reports whether path is dir or under it. Both are clean.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
