package server

import (
	"cmp"
	"context"
	"os/exec"
	"strconv"
	"strings"

	"oversell/internal/errclass"
	"oversell/internal/limits"
	"oversell/server/container"
	"oversell/server/instance"
	"oversell/server/topology"
)

// Kind says where a target comes from.
type Kind string

// The kinds of targets.
const (
	// Embedded is an emulation of Redis inside this program.
	Embedded Kind = "embedded"
	// Process is a redis-server that this program started.
	Process Kind = "process"
	// Container is a server that this program started in a container.
	Container Kind = "container"
	// Address is a server that was running before.
	Address Kind = "address"
)

// MaxMasters is the largest number of masters that a Spec may ask for.
const MaxMasters = limits.Masters

// Spec says which Redis to use. The zero value is one server, a
// redis-server of this machine if there is one, else the emulation.
type Spec struct {
	// Target is auto (or empty), embedded, process, container, or the address of a server,
	// redis://user:password@host:port/db or rediss://… for TLS. The meaning of several addresses, separated by commas,
	// depends on the topology. An address may set only db and skip_verify in its query, and master with the topology
	// sentinel. It may contain a password: print a Spec with String, never this field.
	Target string
	// Topology is one of
	//
	//	single     one server, as is empty
	//	masters:N  N independent masters, as are several addresses and empty
	//	replica    a master and a replica; the address is the master's
	//	sentinel   a master, two replicas and three sentinels that replace the
	//	           master when it fails; the addresses are the sentinels'
	//	cluster    three masters with a replica each, which share the keys; the
	//	           addresses are those of some nodes
	Topology string
	// AllowRemote permits addresses that are not on this machine.
	AllowRemote bool
	// Mend repairs the leftovers of killed runs on servers at addresses: it restores changed settings and roles, and
	// removes keys. Without it, Open refuses a changed server, and notes keys.
	Mend bool
	// Persist makes the servers that we start keep an append-only file, so that one that is killed and started again
	// still has its data.
	Persist bool
	// Clocks prepares the servers that we start as processes for [Target.Jump].
	// They run with a library preloaded, so ask for it only where it is needed.
	Clocks bool
	// Image is the image of containers. Empty means the value of the environment variable REDIS_IMAGE, or else redis:7.
	Image string
}

// String returns the Spec without passwords.
func (s Spec) String() string {
	text := s.Target
	switch {
	case s.IsAddress():
		text = instance.Redact(text)
	case strings.ContainsAny(text, "@:"): // no address, but it may hold a password
		text = "***"
	}
	if text == "" {
		text = "auto"
	}
	if s.Topology != "" {
		text += " " + s.Topology
	}
	return text
}

// GoString returns String, so that no way of printing a Spec shows a password.
func (s Spec) GoString() string { return "server.Spec(" + s.String() + ")" }

// Validate reports what is wrong with the Spec, before anything is started or
// connected to. Host names are looked up, because whether they are on this
// machine is part of the question. The error is of class [ErrUsage], or
// [ErrEnvironment] when a name cannot be looked up.
func (s Spec) Validate(ctx context.Context) error {
	_, err := s.plan(ctx)
	return err
}

// IsAddress reports whether the Spec names servers that are running already.
func (s Spec) IsAddress() bool { return strings.Contains(s.Target, "://") }

// Embeds reports whether the Spec leads to the emulation, as known before anything is opened.
func (s Spec) Embeds() bool {
	if s.Target == "" || s.Target == "auto" {
		_, err := exec.LookPath(instance.ServerName)
		return err != nil
	}
	return s.Target == string(Embedded)
}

// Masters returns the number of independent masters that the Spec asks for. It
// fails as Validate does.
func (s Spec) Masters(ctx context.Context) (int, error) {
	p, err := s.plan(ctx)
	return p.masters, err
}

// Members returns the servers that the Spec leads to, as known before any is started or connected to: none if that is
// not known. They have no addresses. It fails as Validate does.
func (s Spec) Members(ctx context.Context) ([]Member, error) {
	p, err := s.plan(ctx)
	if err != nil || p.kind == Address && p.shape != topology.Independent {
		return nil, err
	}
	return topology.Members(p.shape, p.masters), nil
}

// CanFailOver returns nil if the servers that the Spec leads to may have a replica to promote, as known before any is
// started or connected to. Otherwise it fails as [Target.Can] does.
func (s Spec) CanFailOver(ctx context.Context) error {
	p, err := s.plan(ctx)
	if err != nil || p.shape != topology.Independent {
		return err
	}
	if s.Embeds() {
		p.kind = Embedded
	}
	return noReplica(p.kind, p.topology)
}

// plan is a parsed Spec.
type plan struct {
	Spec
	kind      Kind // empty: auto
	masters   int  // independent ones
	topology  string
	shape     topology.ShapeName
	endpoints []instance.Endpoint // of kind Address
	// master is the name of the master that the sentinels monitor; empty if they monitor only one.
	master string
}

// knownTopologies is for error messages.
const knownTopologies = "single, masters:N, replica, sentinel and cluster"

func (s Spec) plan(ctx context.Context) (plan, error) {
	p := plan{Spec: s}
	var err error
	if p.shape, p.masters, err = parseTopology(s.Topology); err != nil {
		return plan{}, err
	}
	switch {
	case s.Target == "" || s.Target == "auto":
	case s.Target == string(Embedded), s.Target == string(Process), s.Target == string(Container):
		p.kind = Kind(s.Target)
	case s.IsAddress():
		p.kind = Address
	default:
		if strings.ContainsAny(s.Target, "@:") { // an address, nearly: it may hold a password
			return plan{}, errclass.Usagef("unknown target: there are auto, embedded, process, container, and addresses like redis://127.0.0.1:6379 or, for TLS, rediss://127.0.0.1:6379")
		}
		return plan{}, errclass.Usagef("unknown target %q: there are auto, embedded, process, container, and addresses like redis://127.0.0.1:6379", s.Target)
	}
	if p.kind == Address {
		if err := p.addresses(ctx); err != nil {
			return plan{}, err
		}
	}
	p.topology = s.Topology
	if p.topology == "" {
		p.topology = "single"
		if p.masters > 1 {
			p.topology = "masters:" + strconv.Itoa(p.masters)
		}
	}
	if p.kind == Embedded {
		err = p.checkEmbedded()
	}
	return p, err
}

// addresses reads the addresses and reconciles them with the topology.
func (p *plan) addresses(ctx context.Context) error {
	var err error
	if p.endpoints, p.master, err = instance.ParseAddresses(p.Target, p.shape == topology.Guarded); err != nil {
		return err
	}
	switch {
	case p.Persist:
		return errclass.Usagef("keeping an append-only file is up to the server at an address; only servers that oversell starts can be asked to: --target process or container")
	case p.shape == topology.Replicated && len(p.endpoints) > 1:
		return errclass.Usagef("topology replica needs one address, that of the master, but the target has %d", len(p.endpoints))
	case p.shape == topology.Clustered && p.endpoints[0].Login.DB != 0:
		return errclass.Usagef("a cluster has only database 0, but the address asks for %d", p.endpoints[0].Login.DB)
	case p.shape == topology.Independent:
		if p.masters, err = mastersOf(len(p.endpoints), p.Topology, p.masters); err != nil {
			return err
		}
	}
	if p.AllowRemote {
		return nil
	}
	return instance.AllLoopback(ctx, p.endpoints)
}

// checkEmbedded refuses what only real servers can do.
func (p *plan) checkEmbedded() error {
	if p.shape != topology.Independent {
		return errclass.Usagef("the in-memory emulation has no topology %s, only single and masters:N: use --target process or container", p.topology)
	}
	if p.Persist {
		return errclass.Usagef("the in-memory emulation keeps no append-only file: use --target process or container")
	}
	return nil
}

// image returns the image of containers.
func (s Spec) image() string { return cmp.Or(s.Image, container.DefaultImage()) }

// parseTopology returns the requested shape and number of independent masters.
func parseTopology(text string) (topology.ShapeName, int, error) {
	switch shape := topology.ShapeName(text); shape {
	case "", "single":
		return topology.Independent, 1, nil
	case topology.Replicated, topology.Guarded, topology.Clustered:
		return shape, 1, nil
	}
	count, ok := strings.CutPrefix(text, "masters:")
	if !ok {
		return "", 0, errclass.Usagef("unknown topology %q: there are %s", text, knownTopologies)
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > MaxMasters {
		return "", 0, errclass.Usagef("topology %q: the number of masters must be between 1 and %d", text, MaxMasters)
	}
	return topology.Independent, n, nil
}

// mastersOf reconciles the number of addresses with the topology.
func mastersOf(addresses int, topology string, n int) (int, error) {
	if topology == "" || n == addresses {
		return addresses, nil
	}
	return 0, errclass.Usagef("topology %s needs %d addresses separated by commas, but the target has %d", topology, n, addresses)
}
