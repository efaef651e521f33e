// Command pointers prints, for every type of the Kubernetes API, the scalar fields that Go holds
// by pointer: their zero value is written, while that of other fields is omitted. OpenAPI does
// not tell. Run it inside the module of the testbed; its output, cut down to the definitions in
// kubernetes.txt, is pointers.txt.
//
//go:build ignore

package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var seen = map[reflect.Type]bool{}
var lines []string

func name(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	host := strings.Split(parts[0], ".")
	for i, j := 0, len(host)-1; i < j; i, j = i+1, j-1 {
		host[i], host[j] = host[j], host[i]
	}
	return strings.Join(append(append(host, parts[1:]...), t.Name()), ".")
}

func fields(t reflect.Type, out *[]string) {
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		parts := strings.Split(tag, ",")
		ft := f.Type
		pointer := ft.Kind() == reflect.Pointer
		if pointer {
			ft = ft.Elem()
		}
		if parts[0] == "" && f.Anonymous && ft.Kind() == reflect.Struct {
			fields(ft, out)
			continue
		}
		switch ft.Kind() {
		case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64, reflect.Float32:
			if pointer {
				*out = append(*out, parts[0])
			}
		}
		walk(ft)
	}
}

func walk(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
		walk(t.Elem())
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[t] || !strings.HasPrefix(t.PkgPath(), "k8s.io/") {
		return
	}
	seen[t] = true
	var out []string
	fields(t, &out)
	if len(out) > 0 {
		sort.Strings(out)
		lines = append(lines, name(t)+" "+strings.Join(out, " "))
	}
}

func main() {
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version != "__internal" {
			walk(t)
		}
	}
	walk(reflect.TypeOf(apiextensions.CustomResourceDefinition{}))
	walk(reflect.TypeOf(apiregistration.APIService{}))
	sort.Strings(lines)
	for _, l := range lines {
		fmt.Println(l)
	}
}
