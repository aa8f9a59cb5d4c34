package subprocesslocal

// guardShell runs guards. It is wherever bash is, starts in a millisecond, and takes little memory.
const guardShell = "/bin/sh"

// The guard's program is in three parts. It uses what is built into any shell, besides grep, rmdir and sleep; without
// grep it is slower. What may be missing or gone fails without consequence; stderr is the null device.

// awaitEnd returns when the host is gone.
const awaitEnd = `# The guard of a dsh host: ends the host's commands if it dies.
trap '' HUP INT QUIT TERM PIPE ALRM USR1 USR2 TSTP TTIN TTOU
while read -r _; do :; done
`

// endTree ends what is below $2, the cgroups of commands, and removes it with the guard's own, $3, and with the root of
// both, $4. To get out of the way the guard moves to $5. What cgroup.kill leaves is a process whose first thread has ended.
// A scope is removed by its manager, once the guard has exited.
const endTree = `
populated() {
	while read -r key value; do
		if [ "$key" = populated ]; then [ "$value" = 1 ]; return; fi
	done <"$1/cgroup.events"
	return 1
}
each() {
	while read -r pid; do
		if [ "$pid" != 0 ]; then kill -s KILL "$pid"; fi
	done <"$1/cgroup.procs"
	for dir in "$1"/*/ "$1"/.[!.]*/; do
		if [ -d "$dir" ]; then each "${dir%/}"; fi
	done
}
end() {
	if echo 1 >"$1/cgroup.kill"; then
		if [ $tries != 0 ]; then each "$1"; fi
		return
	fi
	echo 1 >"$1/cgroup.freeze"
	each "$1"
	echo 0 >"$1/cgroup.freeze"
}
clear() {
	rmdir "$1"/*/*/ "$1"/*/
	for dir in "$1"/*/ "$1"/.[!.]*/; do
		if [ -d "$dir" ]; then clear "${dir%/}"; fi
	done
	rmdir "$1"
}
removed() {
	if [ -d "$1" ]; then
		end "$1"
		if ! populated "$1"; then clear "$1"; fi
		if [ -d "$1" ]; then return 1; fi
	fi
	case $3 in *.scope) return ;; esac
	echo $$ >"$4/cgroup.procs"
	rmdir "$2" "$3"
	[ ! -d "$3" ]
}
tries=0
until removed "$2" "$3" "$4" "$5" || [ $tries = 1000 ]; do
	tries=$((tries + 1))
	if [ $tries -lt 100 ]; then sleep 0.005; else sleep 0.1; fi
done
`

// endMarked ends all that has the host id $1 in its cookie, and the process groups that these are in, until four times in a
// row there is none: a process that is being given a new program shows no environment. Threads are looked at, as a process
// whose first has ended shows none either.
const endMarked = `
marked() {
	grep -lsaF -e "=$1:" -e ":$1:" /proc/[0-9]*/task/[0-9]*/environ
	case $? in 126 | 127) ;; *) return ;; esac
	for file in /proc/[0-9]*/task/[0-9]*/environ; do
		while read -r line || [ -n "$line" ]; do
			case $line in *[:=]"$1":*) echo "$file"; break ;; esac
		done <"$file"
	done
}
group() {
	all=
	while read -r line; do all="$all $line"; done <"/proc/$1/stat"
	set -- ${all##*)}
	group=${3:-0}
	case $group in *[!0-9]* | 0 | 1) group= ;; esac
}
calm=0
tries=0
while [ $calm -lt 4 ] && [ $tries -lt 1000 ]; do
	found=$(marked "$1")
	if [ -n "$found" ]; then calm=0; else calm=$((calm + 1)); fi
	for file in $found; do
		pid=${file#/proc/}
		pid=${pid%%/*}
		group "$pid"
		if [ -n "$group" ]; then kill -s KILL -- "-$group"; fi
		kill -s KILL "$pid"
	done
	tries=$((tries + 1))
	if [ $tries -lt 100 ]; then sleep 0.005; else sleep 0.1; fi
done
`
