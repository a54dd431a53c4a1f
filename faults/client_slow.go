package faults

// kindSlow makes a critical section last longer: the client pauses between the section's read and its write.
var kindSlow = Kind{
	Name: "slow", Level: OnClient,
	Syntax:   "slow D [client N]" + whenSyntax,
	Summary:  "the critical section lasts D longer: the pause is after its first command or, in a section without commands, at its beginning",
	Takes:    []Part{TakesAmount, TakesClient, TakesNth, TakesChance},
	Requires: []Part{TakesAmount},
	Complete: func(f *Fault) {
		f.Where.State, f.Where.First = Holding, true
	},
	Disrupt:  func(f Fault) Disruption { return Disruption{Pause: f.Amount} },
	Provokes: overrunsBy(amount),
}
