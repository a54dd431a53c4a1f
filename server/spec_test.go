package server

import (
	"fmt"
	"strings"
	"testing"

	"oversell/internal/servertest"
)

func TestSpecIsRefusedBeforeAnythingStarts(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Target: "docker"}, "there are auto, embedded, process, container, and addresses"},
		{Spec{Target: "localhost:6379"}, "addresses like redis://"},
		{Spec{Topology: "ring"}, "there are single, masters:N, replica, sentinel and cluster"},
		{Spec{Target: "embedded", Topology: "sentinel"}, "the in-memory emulation has no topology sentinel"},
		{Spec{Target: "embedded", Persist: true}, "keeps no append-only file"},
		{Spec{Target: "redis://127.0.0.1:1", Persist: true}, "is up to the server"},
		{Spec{Target: "redis://127.0.0.1:1,redis://127.0.0.1:2", Topology: "replica"}, "topology replica needs one address"},
		{Spec{Target: "redis://127.0.0.1:1/2", Topology: "cluster"}, "a cluster has only database 0"},
		{Spec{Target: "redis://127.0.0.1:1?master=a"}, `not "master"`},
		{Spec{Target: "redis://127.0.0.1:1?master=a,redis://127.0.0.1:2?master=b", Topology: "sentinel"}, "name two masters, a and b"},
		{Spec{Target: "redis://127.0.0.1:1?master=a&db=1&x=1", Topology: "sentinel"}, `not "x"`},
		{Spec{Topology: "masters:0"}, "between 1 and 64"},
		{Spec{Topology: "masters:many"}, "between 1 and 64"},
		{Spec{Target: "redis://127.0.0.1:1,redis://127.0.0.1:2", Topology: "single"}, "needs 1 addresses"},
		{Spec{Target: "redis://127.0.0.1:1", Topology: "masters:3"}, "needs 3 addresses"},
		{Spec{Target: "redis://127.0.0.1:1,redis://127.0.0.1:1"}, "given twice"},
		{Spec{Target: "http://127.0.0.1:1"}, "must begin with redis://"},
		{Spec{Target: "unix:///tmp/x"}, "must begin with redis://"},
		{Spec{Target: "redis://127.0.0.1:1/-1"}, "address redis://127.0.0.1:1/-1: the database must be 0 or more"},
		{Spec{Target: "redis://127.0.0.1:1?db=-1"}, "the database must be 0 or more"},
		{Spec{Target: "redis://127.0.0.1:1,127.0.0.1:2"}, "address 2 of 2: must begin with redis://"},
		{Spec{Target: "redis://127.0.0.1:1?max_retries=5"}, `not "max_retries"`},
		{Spec{Target: "redis://127.0.0.1:1?password=secret"}, `not "password"`},
		{Spec{Target: "redis://127.0.0.1:1/x/y"}, "invalid URL path"},
		{Spec{Target: "redis://127.0.0.1:port"}, "cannot be read"},
		{Spec{Target: "redis://u:se/secret@127.0.0.1:1"}, "special characters in a password"},
		{Spec{Target: "redis://u:1#secret@127.0.0.1:1"}, "special characters in a password"},
		{Spec{Target: "redis://u:1?secret@127.0.0.1:1"}, "special characters in a password"},
		{Spec{Target: "redis://u:1/secret@127.0.0.1:1"}, "special characters in a password"},
		{Spec{Target: "redis://u:secret,secret@127.0.0.1:1"}, "address redis://"},
		{Spec{Target: "redis://u:secret@192.0.2.1:6379"}, "192.0.2.1:6379 is not on this machine; load goes to loopback only, unless --allow-remote is given"},
		{Spec{Target: "redis://[2001:db8::1]"}, "is not on this machine"},
		{Spec{Target: "redis://0.0.0.0:6379"}, "is not on this machine"},
		{Spec{Target: "redis://127.0.0.1:1,redis://192.0.2.1:6379"}, "192.0.2.1:6379 is not on this machine"},
	} {
		t.Run(c.spec.String(), func(t *testing.T) {
			servertest.WantError(t, c.spec.Validate(t.Context()), ErrUsage, c.want)
			_, err := Open(t.Context(), c.spec)
			servertest.WantError(t, err, ErrUsage, c.want)
		})
	}
}

func TestSpecIsUnderstood(t *testing.T) {
	for _, c := range []struct {
		spec     Spec
		topology string
	}{
		{Spec{}, "single"},
		{Spec{Target: "auto", Topology: "masters:1"}, "masters:1"},
		{Spec{Target: "embedded", Topology: "single"}, "single"},
		{Spec{Target: "process", Topology: "masters:5"}, "masters:5"},
		{Spec{Target: "redis://localhost"}, "single"},
		{Spec{Target: "redis://[::1]:7/3"}, "single"},
		{Spec{Target: "redis://127.0.0.1:1/2, rediss://u:p@127.0.0.1:2?db=1&skip_verify=true"}, "masters:2"},
		{Spec{Target: "redis://192.0.2.1:6379", AllowRemote: true}, "single"},
	} {
		p, err := c.spec.plan(t.Context())
		if err != nil {
			t.Errorf("%v: %v", c.spec, err)
		} else if p.topology != c.topology {
			t.Errorf("%v: topology %q; want %q", c.spec, p.topology, c.topology)
		}
	}
}

func TestSpecPrintsNoPassword(t *testing.T) {
	for _, target := range []string{
		"redis://:secret@127.0.0.1:1/2",
		"redis://u:secret@127.0.0.1:1,rediss://u:secret@127.0.0.1:2",
		"redis://u:sec@secret@127.0.0.1",
		"redis://u:secret,secret@127.0.0.1",
		"redis://u:secret/secret@127.0.0.1",
		"redis://127.0.0.1?password=secret",
	} {
		s := Spec{Target: target}
		for _, text := range []string{s.String(), fmt.Sprintf("%v %+v %#v %s", s, s, s, s)} {
			if strings.Contains(text, "secret") {
				t.Errorf("a password is shown: %s", text)
			}
		}
	}
	if got := (Spec{Target: "redis://u:p@127.0.0.1:1/2,redis://127.0.0.1:3"}).String(); got != "redis://***@127.0.0.1:1/2,redis://127.0.0.1:3" {
		t.Errorf("shown as %s", got)
	}
}
