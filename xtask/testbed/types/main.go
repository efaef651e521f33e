// Command types prints how Kubernetes writes its own types as protobuf and as JSON, one type per line:
//
//	NAME FIELD=NUMBER:SHAPE …
//
// FIELD is the JSON name, or ~ for a struct whose fields stand in its parent. SHAPE is a list mark (*), a
// map mark (%) or nothing, then p if the Go field is a pointer, o if JSON leaves it out when empty, a colon,
// and the type: s string, b bool, i integer, d double, y bytes, or the name of another type.
package main

import (
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var lines = map[string]string{}

func main() {
	roots := []reflect.Type{}
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version != "__internal" && !strings.Contains(gvk.Version, "alpha") && !strings.Contains(gvk.Version, "beta") {
			roots = append(roots, t)
		}
	}
	roots = append(roots,
		reflect.TypeOf(apiextensions.CustomResourceDefinition{}),
		reflect.TypeOf(apiregistration.APIService{}),
		reflect.TypeOf(metav1.DeleteOptions{}))
	for _, t := range roots {
		walk(t)
	}
	names := []string{}
	for name := range lines {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintln(os.Stdout, name+lines[name])
	}
}

// name is a type's name as OpenAPI writes it.
func name(t reflect.Type) string {
	path := strings.Replace(t.PkgPath(), "k8s.io/", "io.k8s.", 1)
	return strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}

func walk(t reflect.Type) string {
	own := name(t)
	if _, done := lines[own]; done || t.Kind() != reflect.Struct {
		return own
	}
	lines[own] = ""
	line := ""
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		tag := field.Tag.Get("protobuf")
		if tag == "" || tag == "-" {
			continue
		}
		json := strings.Split(field.Tag.Get("json"), ",")
		label := json[0]
		if label == "" {
			label = "~"
		}
		flags := ""
		ft := field.Type
		if ft.Kind() == reflect.Pointer {
			flags += "p"
			ft = ft.Elem()
		}
		for _, option := range json[1:] {
			if option == "omitempty" || option == "omitzero" {
				flags += "o"
				break
			}
		}
		parts := strings.Split(tag, ",")
		line += fmt.Sprintf(" %s=%s:%s", label, number(parts), shape(ft, flags))
	}
	lines[own] = line
	return own
}

// number is the field's number. Maps have a tag of their own form, with the number in the same place.
func number(parts []string) string { return parts[1] }

func shape(t reflect.Type, flags string) string {
	switch {
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return "*" + flags + ":" + scalar(t.Elem())
	case t.Kind() == reflect.Map:
		return "%" + flags + ":" + scalar(t.Elem())
	default:
		return flags + ":" + scalar(t)
	}
}

func scalar(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "i"
	case reflect.Float32, reflect.Float64:
		return "d"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "y"
		}
		// A named list is a message with one repeated field.
		return "*" + scalar(t.Elem())
	case reflect.Struct:
		return walk(t)
	}
	return "?" + t.Kind().String()
}
