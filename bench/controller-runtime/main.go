// The operator on controller-runtime, with CreateOrUpdate on cached reads: the way kubebuilder's guide shows.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

type WebServerSpec struct {
	Replicas int32  `json:"replicas"`
	Image    string `json:"image"`
	Port     int32  `json:"port"`
}

type WebServerStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	ReadyReplicas      int32 `json:"readyReplicas"`
}

type WebServer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WebServerSpec   `json:"spec"`
	Status            WebServerStatus `json:"status,omitempty"`
}

type WebServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WebServer `json:"items"`
}

func (w *WebServer) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func (l *WebServerList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = make([]WebServer, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*WebServer)
	}
	return &out
}

// progress says when every object has been reconciled, and in which order.
type progress struct {
	sync.Mutex
	wanted int
	seen   map[string]bool
	order  []string
}

func (p *progress) reconciled(name string) {
	p.Lock()
	defer p.Unlock()
	if p.seen[name] {
		return
	}
	p.seen[name] = true
	p.order = append(p.order, name)
	if len(p.order) == p.wanted {
		fmt.Printf("reconciled %d\n", p.wanted)
	}
}

type reconciler struct {
	client.Client
	progress *progress
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	web := &WebServer{}
	if err := r.Get(ctx, request.NamespacedName, web); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	labels := map[string]string{"app": web.Name}
	meta := metav1.ObjectMeta{Name: web.Name, Namespace: web.Namespace}

	deployment := &appsv1.Deployment{ObjectMeta: meta}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		deployment.Labels = labels
		deployment.Spec.Replicas = &web.Spec.Replicas
		if deployment.Spec.Selector == nil {
			deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		}
		deployment.Spec.Template.Labels = labels
		if len(deployment.Spec.Template.Spec.Containers) != 1 {
			deployment.Spec.Template.Spec.Containers = make([]corev1.Container, 1)
		}
		container := &deployment.Spec.Template.Spec.Containers[0]
		container.Name = "web"
		container.Image = web.Spec.Image
		if len(container.Ports) != 1 {
			container.Ports = make([]corev1.ContainerPort, 1)
		}
		container.Ports[0].ContainerPort = web.Spec.Port
		return controllerutil.SetControllerReference(web, deployment, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}

	service := &corev1.Service{ObjectMeta: meta}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, service, func() error {
		service.Labels = labels
		service.Spec.Selector = labels
		if len(service.Spec.Ports) != 1 {
			service.Spec.Ports = make([]corev1.ServicePort, 1)
		}
		port := &service.Spec.Ports[0]
		port.Name, port.Port, port.TargetPort = "http", web.Spec.Port, intstr.FromInt32(web.Spec.Port)
		return controllerutil.SetControllerReference(web, service, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}

	status := WebServerStatus{
		ObservedGeneration: web.Generation,
		ReadyReplicas:      deployment.Status.ReadyReplicas,
	}
	if web.Status != status {
		web.Status = status
		if err := r.Status().Update(ctx, web); err != nil {
			if apierrors.IsConflict(err) {
				return ctrl.Result{Requeue: true}, nil
			}
			return ctrl.Result{}, err
		}
	}
	r.progress.reconciled(web.Name)
	return ctrl.Result{}, nil
}

func main() {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	wanted, err := strconv.Atoi(os.Getenv("BENCH_OBJECTS"))
	if err != nil {
		return fmt.Errorf("failed to read BENCH_OBJECTS: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	group := schema.GroupVersion{Group: "bench.windlass.dev", Version: "v1"}
	scheme.AddKnownTypes(group, &WebServer{}, &WebServerList{})
	metav1.AddToGroupVersion(scheme, group)

	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	// The client's own limit would be what is measured.
	config.QPS, config.Burst = -1, -1
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	progress := &progress{wanted: wanted, seen: map[string]bool{}}
	err = ctrl.NewControllerManagedBy(manager).
		For(&WebServer{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(&reconciler{Client: manager.GetClient(), progress: progress})
	if err != nil {
		return err
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		return err
	}
	fmt.Println("order " + strings.Join(progress.order, " "))
	return nil
}
