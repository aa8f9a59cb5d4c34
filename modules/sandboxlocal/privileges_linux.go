package sandboxlocal

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// keptCapabilities let root work on files of other users in the places that a command may write to. None of them undoes a
// mount, reads another process or makes a device.
var keptCapabilities = []struct {
	number uintptr
	name   string
}{
	{unix.CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
	{unix.CAP_CHOWN, "CAP_CHOWN"},
	{unix.CAP_FOWNER, "CAP_FOWNER"},
}

// privileges are bubblewrap's arguments that take root's rights over the kernel away.
func privileges() []string {
	var args []string
	if os.Geteuid() != 0 {
		return []string{"--cap-drop", "ALL"}
	}
	if !capable(unix.CAP_SYS_ADMIN) {
		return []string{"--unshare-user", "--cap-drop", "ALL"}
	}
	// Files of the kernel that belong to root and do not ask for a capability.
	for _, name := range []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr", "pressure"} {
		path := "/proc/" + name
		args = append(args, "--ro-bind-try", path, path)
	}
	args = append(args, "--cap-drop", "ALL")
	for _, c := range keptCapabilities {
		args = append(args, "--cap-add", c.name)
	}
	return args
}

// keptInRun are arguments that bring back what of /run ordinary programs read: regular files that /etc links to, such as
// resolv.conf, and links that lead out of /run. A directory would bring sockets with it.
func keptInRun() []string {
	var args []string
	for _, link := range linksIn("/etc") {
		real, err := filepath.EvalSymlinks(link)
		if err != nil || !within(real, run) {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.Mode().IsRegular() {
			args = append(args, "--ro-bind-try", real, real)
		}
	}
	for _, link := range linksIn(run) {
		target, err := os.Readlink(link)
		if real, rerr := filepath.EvalSymlinks(link); err == nil && rerr == nil && !within(real, run) {
			args = append(args, "--symlink", target, link)
		}
	}
	return args
}

// linksIn returns the paths of the symbolic links in a directory.
func linksIn(dir string) (links []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type()&os.ModeSymlink != 0 {
			links = append(links, filepath.Join(dir, e.Name()))
		}
	}
	return links
}

// capable reports whether this process may use a capability.
func capable(number uint) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return false
	}
	return data[number/32].Effective&(1<<(number%32)) != 0
}
