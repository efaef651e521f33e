package controllers

import batchv1 "k8s.io/api/batch/v1"

func (r *ProxyReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&ship.Proxy{}).Owns(&batchv1.Job{}).Complete(r)
}
