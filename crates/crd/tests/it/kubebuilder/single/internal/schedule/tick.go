package schedule

func Tick() {}
