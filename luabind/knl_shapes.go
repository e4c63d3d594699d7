package luabind

import (
	"sync"

	"github.com/knl-run/knl/shapes"
)

// knlShapes answers what knl publishes beside its options.
func knlShapes() []Shape {
	var out []Shape
	for _, s := range shapes.Kernel() {
		out = append(out, Shape{Name: s.Name, Doc: s.Doc, Schema: s.Schema})
	}
	f := errorForm()
	return append(out,
		Shape{Name: f.Name, Doc: f.Doc, Schema: f.Schema()},
		Shape{Name: "tool_entry", Doc: "A tool of a device.", Fields: toolFields},
		Shape{Name: "callable", Doc: "A function, or what can be called like one.", Schema: takesFunction.Named("function")},
	)
}

// errorForm is what knl.error answers.
var errorForm = sync.OnceValue(func() *shapes.Form {
	return shapes.NewForm("error", "What was raised, read by knl.error; its tostring is the whole text.", Fault{},
		"Kind kind,omitempty one of error_kinds when the kernel raised it", "Method method,omitempty the call that did not go through",
		"Retryable retryable", "Message message")
})
