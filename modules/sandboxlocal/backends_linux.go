package sandboxlocal

const unsupported = "" // Linux always has a backend to ask

func backends(m *machine) []backend {
	switch c := m.config; {
	case len(c.RunnerCommand) > 0:
		return []backend{&custom{machine: m, profile: newBwrap(m)}}
	case c.Backend == BackendBwrap || c.Network == NetworkNone:
		return []backend{newBwrap(m)}
	case c.Backend == BackendLandlock:
		return []backend{newLandlock(m)}
	}
	return []backend{newBwrap(m), newLandlock(m)}
}
