package alike

import "strconv"

// Colliding are numbers of 15 digits in pairs: the decimal digits of both have the same checksum of 32 bits, by a function that
// code may use to shorten names and numbers. The numbers of the first samePrefix pairs collide behind any prefix, too.
var Colliding = [][2]int64{
	{150746938072080, 154083552331301}, // CRC-32 (IEEE)
	{994820647588778, 381125328520013}, // CRC-32C
	{600000000000020, 600000000000101}, // Adler-32
	{994820647601513, 965587271288900}, // String.hashCode of Java
	{211852580950800, 808167104676000}, // Bernstein's hash (times 33)
	{611852580938900, 423705161897626}, // FNV-1
	{467778871419026, 879631452371656}, // FNV-1a
	{555926290477072, 911852580943115}, // MD5, the first 8 digits
	{355926290473815, 179631452379737}, // SHA-1, the first 8 digits
	{111852580955998, 967778871413988}, // SHA-256, the first 8 digits
}

const samePrefix = 5

// SameChecksum are names that begin with a name, of which each has the checksum of another one.
func SameChecksum(n string) (names []string) {
	for _, p := range Colliding[:samePrefix] {
		for _, k := range p {
			names = append(names, n+"-"+strconv.FormatInt(k, 10))
		}
	}
	return names
}
