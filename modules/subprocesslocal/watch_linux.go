package subprocesslocal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// watcher tells ranges when the events of their cgroups may have changed. It has one inotify instance for all of them.
// Where a user may have no more instances or watches, it has the kernel poll the files, which costs a descriptor each.
type watcher struct {
	readers sync.WaitGroup

	mu      sync.Mutex
	inotify *os.File
	watches map[int32]func()
	epoll   *os.File // nil until it is needed
	polls   map[int32]func()
}

func newWatcher() (*watcher, error) {
	w := &watcher{watches: map[int32]func(){}, polls: map[int32]func(){}}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return w, w.startPolling()
	}
	w.inotify = os.NewFile(uintptr(fd), "inotify")
	w.readers.Go(w.read)
	return w, nil
}

// add has changed called whenever the events of a cgroup have changed. changed must not block. The end of the watch must
// come before that of the cgroup.
func (w *watcher) add(dir string, changed func()) (end func(), err error) {
	path := filepath.Join(dir, "cgroup.events")
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inotify != nil {
		// While mu is held no event is passed on, so none is missed for want of an entry.
		wd, err := unix.InotifyAddWatch(int(w.inotify.Fd()), path, unix.IN_MODIFY)
		if err == nil {
			w.watches[int32(wd)] = changed
			return func() { w.unwatch(wd) }, nil
		}
	}
	return w.poll(path, changed)
}

func (w *watcher) unwatch(wd int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.watches[int32(wd)]; ok {
		delete(w.watches, int32(wd))
		unix.InotifyRmWatch(int(w.inotify.Fd()), uint32(wd))
	}
}

// read passes on what inotify says.
func (w *watcher) read() {
	buf := make([]byte, 64*unix.SizeofInotifyEvent)
	for {
		n, err := w.inotify.Read(buf)
		if err != nil {
			return
		}
		for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			wd := int32(binary.NativeEndian.Uint32(rest))
			mask := binary.NativeEndian.Uint32(rest[4:])
			rest = rest[min(len(rest), unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(rest[12:]))):]
			w.mu.Lock()
			var tell []func()
			if mask&unix.IN_Q_OVERFLOW != 0 {
				for _, changed := range w.watches {
					tell = append(tell, changed)
				}
			} else if changed, ok := w.watches[wd]; ok && mask&unix.IN_MODIFY != 0 {
				tell = append(tell, changed)
			}
			w.mu.Unlock()
			for _, changed := range tell {
				changed()
			}
		}
	}
}

// startPolling opens what poll needs. The caller holds mu, or is the only one to know w.
func (w *watcher) startPolling() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("watch cgroups: %w", err)
	}
	unix.SetNonblock(fd, true) // for os.NewFile, so that Go's own poller waits
	w.epoll = os.NewFile(uintptr(fd), "epoll")
	conn, err := w.epoll.SyscallConn()
	if err != nil {
		return err
	}
	w.readers.Go(func() {
		conn.Read(func(fd uintptr) bool {
			events := make([]unix.EpollEvent, 64)
			for {
				n, err := unix.EpollWait(int(fd), events, 0)
				if n <= 0 && !errors.Is(err, unix.EINTR) {
					return false
				}
				for _, e := range events[:max(n, 0)] {
					w.mu.Lock()
					changed := w.polls[e.Fd]
					w.mu.Unlock()
					if changed != nil {
						changed()
					}
				}
			}
		})
	})
	return nil
}

// poll is add without inotify.
func (w *watcher) poll(path string, changed func()) (end func(), err error) {
	if w.epoll == nil {
		if err := w.startPolling(); err != nil {
			return nil, err
		}
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", path, err)
	}
	// A change is what the file has been through since it was last read.
	var buf [256]byte
	unix.Read(fd, buf[:])
	err = unix.EpollCtl(int(w.epoll.Fd()), unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLPRI | unix.EPOLLET, Fd: int32(fd)})
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("watch %s: %w", path, err)
	}
	w.polls[int32(fd)] = func() {
		unix.Pread(fd, buf[:], 0)
		changed()
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.polls, int32(fd))
		unix.Close(fd)
	}, nil
}

// close ends all watches.
func (w *watcher) close() {
	for _, f := range []*os.File{w.inotify, w.epoll} {
		if f != nil {
			f.Close()
		}
	}
	w.readers.Wait()
}
