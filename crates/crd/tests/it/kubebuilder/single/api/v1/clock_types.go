package v1

type ClockSpec struct{}
