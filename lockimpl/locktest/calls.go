package locktest

import (
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockrules"
	"oversell/variant"
)

// calling makes a rule of cases of package lockrules.
func calling(cases []lockrules.Case) func(*bench) error {
	return func(b *bench) error {
		var parts []part
		for _, c := range cases {
			parts = append(parts, part{c.Name, func(b *bench) error { return c.Try(b.calls()) }})
		}
		return b.together(8, parts)
	}
}

// falseLoss returns the promise that a lock breaks if its holder is told ErrLost and still holds it: linearizable if it is
// promised, else owner-only-release, else the promise of the rule.
func (b *bench) falseLoss() variant.Property {
	for _, p := range []variant.Property{variant.Linearizable, variant.OwnerOnlyRelease} {
		if b.run.promises(p, b.faults...) {
			return p
		}
	}
	return b.property
}

func (b *bench) calls() lockrules.Bench {
	return lockrules.Bench{
		Ctx: b.ctx, Name: b.name, TTL: b.ttl, Extends: b.run.able.extends, Renews: b.run.lock.Renews, Brief: b.run.able.brief, WholeSeconds: b.run.lock.Needs.WholeSeconds, Lasted: b.run.lasted, Log: b.run.logf,
		FalseLoss: b.falseLoss(), Patience: patience, Masters: b.run.server.Nodes(),
		OnVirtualClock: func(try func(lockrules.Virtual) error) error {
			return b.onVirtualClock(func(w *virtualBench) error { return try(w.rules()) })
		},
		Client: func(change func(*variant.Env)) (*lockclient.Client, error) {
			c, err := b.newClient(func(c *client) { change(&c.Env) })
			if err != nil {
				return nil, err
			}
			return c.Client, nil
		},
	}
}
