package arrival

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Process is how arrivals are spread at a rate.
type Process string

// The processes.
const (
	// Constant spreads them evenly.
	Constant Process = "constant"
	// Poisson has them come independently of each other, as customers do: the gaps at a rate
	// that does not change are exponentially distributed.
	Poisson Process = "poisson"
)

// ParseProcess reads the name of a process.
func ParseProcess(text string) (Process, error) {
	if p := Process(text); p == Constant || p == Poisson {
		return p, nil
	}
	return "", fmt.Errorf("must be %s or %s", Constant, Poisson)
}

// Sequence is the times of all arrivals of a load, in order. Equal rates, processes and
// seeds give equal sequences. One goroutine uses it at a time.
type Sequence struct {
	rate  Rate
	draw  *rand.Rand // nil: of a constant process
	n     int64      // arrivals until now
	units float64    // of a Poisson process: when the last one came, at a rate of one
}

// Sequence begins the times of arrivals at this rate.
//
// An arrival of a Poisson process at a rate that changes is one at a rate of 1, moved to
// where the integral of the rate is that large. That is exact, and takes one draw each.
func (r Rate) Sequence(p Process, seed uint64) *Sequence {
	s := &Sequence{rate: r}
	if p == Poisson {
		s.draw = rand.New(rand.NewPCG(seed, ofArrivals))
	}
	return s
}

// ofArrivals keeps their draws apart from those of clients, which have their numbers there.
const ofArrivals = 1 << 63

// Next is the time of the next arrival since the load began; false: no more come. At a
// constant rate arrival i, from 0 on, is at i/rate.
func (s *Sequence) Next() (time.Duration, bool) {
	n := float64(s.n)
	s.n++
	if s.draw != nil {
		s.units += s.draw.ExpFloat64()
		n = s.units
	}
	return s.rate.When(n)
}
