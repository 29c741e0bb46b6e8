package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"strings"
)

// sbom is a list of software (software bill of materials) in the JSON of CycloneDX 1.5. It has neither a time nor a
// serial number, so that the same binary has the same list.
type sbom struct {
	BomFormat    string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Purl    string `json:"purl"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// modulesOf returns the list of what is in a binary, as the go command has written it there: modules, and Go's own
// library as "std".
func modulesOf(binary string) (*sbom, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	program, err := componentOf("application", info.Main)
	if err != nil {
		return nil, err
	}
	std, err := componentOf("library", debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})
	if err != nil {
		return nil, err
	}
	list := &sbom{"CycloneDX", "1.5", 1, metadata{program}, []component{std}, nil}
	for _, module := range info.Deps {
		if module.Version == "(devel)" { // the library, from the same commit
			module.Version = info.Main.Version
		}
		c, err := componentOf("library", *module)
		if err != nil {
			return nil, err
		}
		list.Components = append(list.Components, c)
	}
	of := dependency{Ref: program.Ref}
	for _, c := range list.Components {
		of.DependsOn = append(of.DependsOn, c.Ref)
	}
	list.Dependencies = []dependency{of}
	return list, nil
}

// componentOf describes a module. Its sum is that of go.sum: the SHA-256 of the list of its files and their sums.
func componentOf(kind string, m debug.Module) (component, error) {
	purl := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	c := component{Type: kind, Ref: purl, Name: m.Path, Version: m.Version, Purl: purl}
	if m.Sum != "" {
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
		if err != nil {
			return component{}, fmt.Errorf("sum of %s: %w", m.Path, err)
		}
		c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
	}
	return c, nil
}
