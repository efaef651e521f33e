package schedule

func now() {}
