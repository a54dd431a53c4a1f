package target

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
)

// Kind is how a target came to be.
type Kind string

// The kinds of targets.
const (
	// Embedded is an emulation of Redis inside this program.
	Embedded Kind = "embedded"
	// Process is a redis-server that this program started.
	Process Kind = "process"
	// Address is a server that was running already.
	Address Kind = "address"
)

// MaxMasters is the largest number of masters that a Spec may ask for.
const MaxMasters = 64

// Spec says which Redis is wanted. The zero value means: one server, a
// redis-server of this machine if there is one, else the emulation.
type Spec struct {
	// Target is auto (or empty), embedded, process, or the address of a server,
	// redis://user:password@host:port/db or rediss://… for TLS. Several
	// addresses, separated by commas, are independent masters. An address may
	// set db and skip_verify in its query and nothing else. It may contain a
	// password: print a Spec with String, never this field.
	Target string
	// Topology is single (or empty), or masters:N for N independent masters.
	// Empty with several addresses means that many masters.
	Topology string
	// AllowRemote permits addresses that are not on this machine.
	AllowRemote bool
}

// String is the Spec without passwords.
func (s Spec) String() string {
	text := s.Target
	if s.IsAddress() {
		text = redact(text)
	}
	if text == "" {
		text = "auto"
	}
	if s.Topology != "" {
		text += " " + s.Topology
	}
	return text
}

// GoString is String, so that no way of printing a Spec shows a password.
func (s Spec) GoString() string { return "target.Spec(" + s.String() + ")" }

// Validate reports what is wrong with the Spec, before anything is started or
// connected to. Host names are looked up, because whether they are on this
// machine is part of the question. The error is of class [ErrUsage], or
// [ErrEnvironment] when a name cannot be looked up.
func (s Spec) Validate(ctx context.Context) error {
	_, err := s.plan(ctx)
	return err
}

// IsAddress tells whether the Spec names servers that are running already.
func (s Spec) IsAddress() bool { return strings.Contains(s.Target, "://") }

// Embeds tells whether the Spec leads to the emulation, as far as can be told
// before anything is opened.
func (s Spec) Embeds() bool {
	if s.Target == "" || s.Target == "auto" {
		_, err := exec.LookPath(serverName)
		return err != nil
	}
	return s.Target == string(Embedded)
}

// Masters is the number of independent masters that the Spec asks for. It
// fails as Validate does.
func (s Spec) Masters(ctx context.Context) (int, error) {
	p, err := s.plan(ctx)
	return p.masters, err
}

// plan is a Spec that has been understood.
type plan struct {
	kind      Kind // empty: auto
	masters   int
	topology  string
	endpoints []endpoint // of kind Address
}

func (s Spec) plan(ctx context.Context) (plan, error) {
	var p plan
	switch {
	case s.Target == "" || s.Target == "auto":
	case s.Target == string(Embedded), s.Target == string(Process):
		p.kind = Kind(s.Target)
	case s.IsAddress():
		p.kind = Address
		var err error
		if p.endpoints, err = parseAddresses(s.Target); err != nil {
			return plan{}, err
		}
	default:
		return plan{}, usagef("unknown target %q: this build has auto, embedded, process, and addresses like redis://127.0.0.1:6379", s.Target)
	}
	n, err := parseTopology(s.Topology)
	if err != nil {
		return plan{}, err
	}
	if p.kind == Address {
		if n, err = mastersOf(len(p.endpoints), s.Topology, n); err != nil {
			return plan{}, err
		}
		if !s.AllowRemote {
			if err := allLoopback(ctx, p.endpoints); err != nil {
				return plan{}, err
			}
		}
	}
	p.masters, p.topology = n, s.Topology
	if p.topology == "" {
		p.topology = "single"
		if n > 1 {
			p.topology = "masters:" + strconv.Itoa(n)
		}
	}
	return p, nil
}

// parseTopology returns the number of independent masters that are asked for.
func parseTopology(text string) (int, error) {
	if text == "" || text == "single" {
		return 1, nil
	}
	count, ok := strings.CutPrefix(text, "masters:")
	if !ok {
		return 0, usagef("unknown topology %q: this build has single and masters:N", text)
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > MaxMasters {
		return 0, usagef("topology %q: the number of masters must be between 1 and %d", text, MaxMasters)
	}
	return n, nil
}

// mastersOf reconciles the number of addresses with the topology.
func mastersOf(addresses int, topology string, n int) (int, error) {
	if topology == "" || n == addresses {
		return addresses, nil
	}
	return 0, usagef("topology %s needs %d addresses separated by commas, but the target has %d", topology, n, addresses)
}
