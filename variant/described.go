package variant

// Described is what is known of a variant, of whichever kind.
type Described struct {
	Name string `json:"name"`
	// Was lists its names in earlier versions.
	Was []string `json:"was,omitempty"`
	// Source is the text that the variant comes from.
	Source  string `json:"source"`
	Summary string `json:"summary"`
	// Control says that the variant is known to break.
	Control  bool       `json:"control,omitempty"`
	Promises []Property `json:"promises"`
	// Flaws are what the variant must be caught at.
	Flaws []Flaw `json:"flaws"`
	Needs Needs  `json:"needs"`
	// Fences says that a lock grants fencing tokens.
	Fences bool `json:"fences,omitempty"`
	// Can lists optional capabilities.
	Can []string `json:"can,omitempty"`
}
