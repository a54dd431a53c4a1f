package target

import (
	"strconv"
	"strings"
)

// info is what a server says of itself in reply to INFO.
type info map[string]string

func parseInfo(text string) info {
	in := info{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			in[name] = value
		}
	}
	return in
}

// version names the server; the relatives of Redis also report the version of
// Redis that they are compatible with.
func (in info) version() string {
	if v := in["valkey_version"]; v != "" {
		return "valkey " + v
	}
	if v := in["redis_version"]; v != "" {
		return v
	}
	return "unknown"
}

// named is a version as it reads in a sentence.
func named(version string) string {
	switch {
	case version == "unknown":
		return "a Redis of unknown version"
	case strings.HasPrefix(version, "valkey"):
		return version
	}
	return "Redis " + version
}

// number is 0 if there is none.
func (in info) number(name string) int {
	n, _ := strconv.Atoi(in[name])
	return n
}
