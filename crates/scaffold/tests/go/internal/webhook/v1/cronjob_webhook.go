package v1

func (d *CronJobCustomDefaulter) Default(ctx context.Context, job *batchv1.CronJob) error { return nil }

func validateSchedule(schedule string) error { return nil }
