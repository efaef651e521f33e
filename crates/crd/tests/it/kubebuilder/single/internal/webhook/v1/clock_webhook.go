package v1

func (d *ClockCustomDefaulter) Default(ctx context.Context, obj runtime.Object) error { return nil }
