package instance

import (
	"strings"
	"sync"
)

// Versions names the version of the masters once if all of them agree.
func Versions(servers []*Server) string {
	var all []string
	for _, s := range servers {
		if s.Role == Master {
			all = append(all, s.Version)
		}
	}
	for _, v := range all {
		if v != all[0] {
			return strings.Join(all, ", ")
		}
	}
	return all[0]
}

// OpenAll opens n servers at once. If one fails, it stops the others.
func OpenAll(n int, open func(i int) (*Server, error)) ([]*Server, error) {
	servers, errs := make([]*Server, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { servers[i], errs[i] = open(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			EndAll(servers)
			return nil, err // the first error explains enough, in one line
		}
	}
	return servers, nil
}

// EndAll stops servers for good, all at once.
func EndAll(servers []*Server) {
	var wg sync.WaitGroup
	for _, s := range servers {
		if s != nil {
			wg.Go(s.end)
		}
	}
	wg.Wait()
}
