package otelzk

import "go.opentelemetry.io/otel/attribute"

// series names the locks that have one series of each metric: those of one kind and one name, which is "" for
// locks without a name (zklock.WithName).
type series struct{ kind, name string }

// attributes returns those of metrics, with room for more.
func (s series) attributes() []attribute.KeyValue {
	kv := append(make([]attribute.KeyValue, 0, 8), attribute.String(attrKind, s.kind))
	if s.name != "" {
		kv = append(kv, attribute.String(attrName, s.name))
	}
	return kv
}

// with returns the attributes of metrics and further ones.
func (s series) with(own ...attribute.KeyValue) []attribute.KeyValue {
	return append(s.attributes(), own...)
}

// onSpan returns the attributes of the spans of one lock.
func (s series) onSpan(label, chroot, path string) []attribute.KeyValue {
	kv := s.with(attribute.String(attrDBNamespace, chroot), attribute.String(attrPath, path))
	if label != "" {
		kv = append(kv, attribute.String(attrLabel, label))
	}
	return kv
}
