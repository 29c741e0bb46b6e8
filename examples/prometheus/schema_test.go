package main

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	schema "github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// document is a dashboard as all versions of Grafana import it.
type document = schema.Dashboard //nolint:staticcheck // its successor is for Grafana 12 and later only

// decode reads a dashboard as Grafana's schema has it. A field that the schema does not have, at any depth, is an
// error, and so is a value of another type.
func decode(text string) (d document, err error) {
	kinds := cog.NewRuntime()
	kinds.RegisterPanelcfgVariant(timeseries.VariantConfig())
	kinds.RegisterDataqueryVariant(prometheus.VariantConfig())
	// A strict decoder returns an empty list and not nil, so that it leaves out panels in which it finds no error.
	// And it is not strict about fieldConfig.
	if err := new(document).UnmarshalJSONStrict([]byte(text)); failed(err) {
		return d, err
	}
	var fields struct {
		Panels []struct{ FieldConfig json.RawMessage }
	}
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return d, err
	}
	for _, p := range fields.Panels {
		if err := new(schema.FieldConfigSource).UnmarshalJSONStrict(p.FieldConfig); failed(err) {
			return d, err
		}
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return d, err
	}
	return d, d.Validate()
}

func failed(err error) bool {
	var all cog.BuildErrors
	return err != nil && (!errors.As(err, &all) || len(all) > 0)
}

// The dashboard is one by Grafana's schema. Its panels and queries are of kinds that decode knows. For other kinds
// the schema would say nothing of their options.
func TestDashboardSchema(t *testing.T) {
	text := file(t, docs+"dashboard.json")
	d, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"refresh", "allValue", "gridPos", "overrides", "showLegend", "sort", "legendFormat"} {
		if _, err := decode(strings.ReplaceAll(text, `"`+word+`"`, `"wrong"`)); err == nil {
			t.Errorf("no error for a misspelled %s", word)
		}
	}
	for _, p := range d.Panels {
		if p.Panel == nil {
			t.Error("a row: decode does not look into it")
			continue
		}
		title := *p.Panel.Title
		options, ok := p.Panel.Options.(*timeseries.Options)
		if !ok {
			t.Errorf("%s: options of kind %T", title, p.Panel.Options)
			continue
		}
		legend, tooltip := options.Legend, options.Tooltip
		if !slices.Contains([]common.LegendDisplayMode{"list", "table", "hidden"}, legend.DisplayMode) ||
			!slices.Contains([]common.LegendPlacement{"bottom", "right"}, legend.Placement) ||
			!slices.Contains([]common.TooltipDisplayMode{"single", "multi", "none"}, tooltip.Mode) ||
			!slices.Contains([]common.SortOrder{"asc", "desc", "none"}, tooltip.Sort) {
			t.Errorf("%s: legend %+v, tooltip %+v", title, options.Legend, options.Tooltip)
		}
		for _, q := range p.Panel.Targets {
			if query, ok := q.(*prometheus.Dataquery); !ok || query.Expr == "" || query.RefId == nil {
				t.Errorf("%s: query %T %+v", title, q, q)
			}
		}
	}
}
