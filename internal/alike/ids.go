package alike

import "math"

// IDs differ from 7 by a power of ten or of two, or only by the sign.
func IDs() []int64 {
	ids := []int64{7, 0, -7, -1, math.MinInt64}
	for n := int64(10); n < math.MaxInt64/10; n *= 10 {
		ids = append(ids, 7+n)
	}
	for k := range 62 {
		if n := int64(1) << k; n > 2 { // 7+1 and 7+2 are no power of ten away from others
			ids = append(ids, 7+n)
		}
	}
	return ids
}
