package arrival

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Process is the distribution of arrivals at a rate.
type Process string

// The processes.
const (
	// Constant spaces arrivals evenly.
	Constant Process = "constant"
	// Poisson makes arrivals independent of each other, like customers: at a constant rate the gaps are
	// exponentially distributed.
	Poisson Process = "poisson"
)

// ParseProcess parses the name of a process.
func ParseProcess(text string) (Process, error) {
	if p := Process(text); p == Constant || p == Poisson {
		return p, nil
	}
	return "", fmt.Errorf("must be %s or %s", Constant, Poisson)
}

// Sequence yields the times of all arrivals of a load, in order. Equal rates, processes and seeds give equal
// sequences. It is not safe for concurrent use.
type Sequence struct {
	rate  Rate
	draw  *rand.Rand // nil for a constant process
	n     int64      // arrivals so far
	units float64    // for a Poisson process: time of the last arrival at rate 1
}

// Sequence returns the arrivals at this rate.
//
// Arrivals of a Poisson process at a changing rate are those at rate 1, moved to where the integral of the rate has
// the same value. This is exact, and takes one random number each.
func (r Rate) Sequence(p Process, seed uint64) *Sequence {
	s := &Sequence{rate: r}
	if p == Poisson {
		s.draw = rand.New(rand.NewPCG(seed, ofArrivals))
	}
	return s
}

// ofArrivals separates their random stream from those of clients, whose numbers are small.
const ofArrivals = 1 << 63

// Next returns the time of the next arrival since the load began; false if there are no more. At a constant rate
// arrival i, from 0 on, is at i/rate.
func (s *Sequence) Next() (time.Duration, bool) {
	n := float64(s.n)
	s.n++
	if s.draw != nil {
		s.units += s.draw.ExpFloat64()
		n = s.units
	}
	return s.rate.When(n)
}
