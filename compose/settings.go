package compose

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"

	"dsh/internal/diag"
	"dsh/internal/source"
)

// delimiter joins keys inside koanf. YAML text cannot hold it, and a key that escapes it names no field.
const delimiter = "\x00"

// settings returns the row's configuration, decoded and as nodes. Of a row that is disabled it checks what needs no
// evaluation, and decodes nothing.
func (j *judged) settings(m *machine, faults *collector) (any, *source.Node) {
	before := faults.len()
	var config *source.Node
	if f := j.field("config"); f != nil {
		config = f.value
	}
	if config != nil && j.disabled == nil {
		config = m.eval(config, j.id, faults)
	}
	evaluated := faults.len() == before
	c := checker{row: j.id, shapes: m.shapes, faults: faults}
	c.config(config, j.module.ConfigType())
	whole := faults.len() == before
	if !whole {
		j.broken = true
	}
	if j.disabled != nil || !evaluated {
		return nil, config
	}
	sound := config
	if !whole {
		sound = j.sound(config, m.shapes)
	}
	value, err := j.decode(sound, m.shapes)
	if err != nil {
		// The check went through every type that a config can have, so this one is of a kind that it does not know.
		j.broken = true
		faults.fault(j.place, j.id, "type", "the config does not fit the module: "+strings.ReplaceAll(redact(err.Error(), config), "\n", "; "), "")
		return nil, config
	}
	if err := j.module.Validate(value); err != nil {
		j.broken = true
		for _, err := range flatten(err) {
			// Of a part, what is said of anything that is not in it is about a default that stands in for a faulty value.
			if d, set := j.invalid(err, sound); whole || set {
				faults.add(d)
			}
		}
	}
	if j.broken {
		return nil, config
	}
	return value, config
}

// unread finds the flags that set something in the row, which is disabled. A patch may well do that, for whom enables it;
// a flag is for this run alone.
func (j *judged) unread(faults *collector) {
	for _, place := range j.flags {
		faults.fault(place, j.id, "set", "it is disabled, so nothing reads this", "disabled at "+j.disabled.value.Place.String())
	}
}

// sound returns config without the settings that have a fault of their own.
func (j *judged) sound(config *source.Node, known shapes) *source.Node {
	part := *config
	part.Fields = nil
	for _, f := range config.Fields {
		one := part
		one.Fields = []source.Field{f}
		var found collector
		c := checker{row: j.id, shapes: known, faults: &found}
		if c.config(&one, j.module.ConfigType()); found.len() == 0 {
			part.Fields = append(part.Fields, f)
		}
	}
	return &part
}

// decode merges config over the module's defaults and decodes the result, strictly.
func (j *judged) decode(config *source.Node, known shapes) (any, error) {
	defaults := j.module.DefaultConfig()
	if config == nil || config.Kind == source.Null || len(config.Fields) == 0 {
		return defaults, nil
	}
	k := koanf.NewWithConf(koanf.Conf{Delim: delimiter, StrictMerge: false})
	if err := k.Load(confmap.Provider(known.plain(reflect.ValueOf(defaults)).(map[string]any), ""), nil); err != nil {
		return nil, err
	}
	if err := k.Load(confmap.Provider(config.Go().(map[string]any), ""), nil); err != nil {
		return nil, err
	}
	value := reflect.New(j.module.ConfigType())
	value.Elem().Set(reflect.ValueOf(defaults))
	err := k.UnmarshalWithConf("", value.Interface(), koanf.UnmarshalConf{Tag: "koanf", DecoderConfig: &mapstructure.DecoderConfig{
		ErrorUnused: true, ZeroFields: true, TagName: "koanf",
		MatchName:  func(key, field string) bool { return key == field },
		DecodeHook: mapstructure.TextUnmarshallerHookFunc(),
	}})
	return value.Elem().Interface(), err
}

// plain returns a default configuration as maps, by its tags.
func (s shapes) plain(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return s.plain(v.Elem())
	case reflect.Struct:
		if textual(v.Type()) {
			return nil // the value stays in the struct that is decoded into
		}
		m := map[string]any{}
		for _, f := range s.of(v.Type()) {
			if x := s.plain(v.FieldByIndex(f.index)); x != nil {
				m[f.key] = x
			}
		}
		return m
	case reflect.Map:
		if v.IsNil() {
			return nil
		}
		m := make(map[string]any, v.Len())
		for it := v.MapRange(); it.Next(); {
			m[it.Key().String()] = s.plain(it.Value())
		}
		return m
	case reflect.Slice, reflect.Interface:
		if v.IsNil() {
			return nil
		}
	}
	return v.Interface()
}

// invalid places what Validate said. set reports whether it is about a setting of config.
func (j *judged) invalid(err error, config *source.Node) (d *diag.Diagnostic, set bool) {
	d = &diag.Diagnostic{Place: j.place, Row: j.id, Slug: "invalid", Message: redact(err.Error(), config)}
	f := fieldError(err)
	if f == nil {
		return d, false
	}
	for _, key := range []string{f.With, f.Key} {
		if key == "" {
			continue
		}
		if first, _, _ := strings.Cut(key, "."); indexKey(configFields(j.module.ConfigType()), strings.TrimRight(first, "[]0123456789")) < 0 {
			d.Hint = fmt.Sprintf("the module has no setting that is called %q; that is its author's to mend", key)
			continue
		}
		place, is := setAt(config, key)
		if is {
			d.Place, set = place, true
			continue
		}
		d.Hint = fmt.Sprintf("%s is the module's default; set it in the row's config", key)
	}
	return d, set
}

// setAt returns where the value is that config has for what a FieldError calls key.
func setAt(config *source.Node, key string) (place diag.Place, set bool) {
	n := config
	for step := range strings.SplitSeq(strings.ReplaceAll(key, "[", ".["), ".") {
		if index, ok := strings.CutPrefix(step, "["); ok {
			i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
			if err != nil || n.Kind != source.List || i < 0 || i >= len(n.Items) {
				return diag.Place{}, false
			}
			n = n.Items[i]
			continue
		}
		field := n.Field(step)
		if field == nil {
			return diag.Place{}, false
		}
		n = field.Value
	}
	return n.Place, true
}

// flatten returns the members of joined errors.
func flatten(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, err := range many.Unwrap() {
			all = append(all, flatten(err)...)
		}
		return all
	}
	return []error{err}
}

// redact takes out of a message what expressions read from the environment.
func redact(message string, config *source.Node) string {
	hidden := false
	config.Walk(func(n *source.Node) bool {
		if n.FromEnv && n.Kind == source.Text && n.Raw != "" || n.FromEnv && (n.Kind == source.Int || n.Kind == source.Float) {
			message = strings.ReplaceAll(message, fmt.Sprintf("%q", n.Raw), "a value from the environment")
			hidden = hidden || strings.Contains(message, n.Raw)
		}
		return true
	})
	if !hidden {
		return message
	}
	if head, _, ok := strings.Cut(message, ", got "); ok && redact(head, config) == head {
		return head + ", got a value from the environment"
	}
	key, _, _ := strings.Cut(message, " ")
	return key + " cannot be what the environment makes it"
}

func fieldError(err error) *moduleFieldError {
	var f *moduleFieldError
	if errors.As(err, &f) {
		return f
	}
	return nil
}
