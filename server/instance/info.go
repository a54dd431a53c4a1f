package instance

import (
	"strconv"
	"strings"
)

// Info is a server's reply to INFO.
type Info map[string]string

// ParseInfo parses the reply to INFO. Lines that are not fields are skipped.
func ParseInfo(text string) Info {
	in := Info{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			in[name] = value
		}
	}
	return in
}

// Version names the server; the relatives of Redis also report the version of
// Redis that they are compatible with.
func (in Info) Version() string {
	if v := in["valkey_version"]; v != "" {
		return "valkey " + v
	}
	if v := in["redis_version"]; v != "" {
		return v
	}
	return "unknown"
}

// Named returns a version for use in a sentence.
func Named(version string) string {
	switch {
	case version == "unknown":
		return "a Redis of unknown version"
	case strings.HasPrefix(version, "valkey"):
		return version
	}
	return "Redis " + version
}

// Number returns a field as a number, 0 if there is none.
func (in Info) Number(name string) int {
	n, _ := strconv.Atoi(in[name])
	return n
}
