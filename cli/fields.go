package cli

import (
	"reflect"
	"strings"
)

// configField is a key of a row's configuration with its value.
type configField struct {
	key, doc string
	value    reflect.Value
}

// configFields returns the keys of a configuration, in order, those of squashed structs among them.
func configFields(config reflect.Value) (fields []configField) {
	for i := range config.NumField() {
		f := config.Type().Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("koanf"), ",")
		switch {
		case strings.Contains(options, "squash"):
			fields = append(fields, configFields(config.Field(i))...)
		case f.IsExported() && key != "" && key != "-":
			fields = append(fields, configField{key, f.Tag.Get("doc"), config.Field(i)})
		}
	}
	return fields
}
