# What a change must pass is `make check`; the rest are its parts and the tools
# of a working day. Everything runs on Go and make alone, but race, which needs
# a C compiler.

GO          ?= go
STATICCHECK := bin/staticcheck-0.8.2
FUZZTIME    ?= 20s
BENCH       ?= .
COUNT       ?= 1

# The packages where goroutines meet.
CONCURRENT := ./kernel/... ./luabind/... ./port/...

.PHONY: all demo build test spec race fuzz bench fmt lint check layout clean

all: build

# build makes the one static binary.
build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/knl ./cmd/knl

# demo lets a loop repair a broken Go module, in a scratch folder under bin/.
demo: build
	bin/knl run examples/fix_the_build.lua

test:
	$(GO) test ./...

# spec runs the Lua specs with the checks of dev mode and without them.
spec: build
	bin/knl spec spec lua
	bin/knl spec --prod spec lua

race:
	CGO_ENABLED=1 $(GO) test -race -short $(CONCURRENT)

# fuzz gives every fuzz target FUZZTIME.
fuzz:
	@for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "== $$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

# bench prints what benchstat reads; ratios are metrics of their own.
bench:
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...

fmt:
	gofmt -w $$($(GO) list -f '{{.Dir}}' ./...)

# layout holds the tree against its tables: what stands where, what imports what.
layout:
	$(GO) test -count=1 -run '^TestLayout|^TestImports|^TestHouse' ./spec

lint: $(STATICCHECK) layout
	@unformatted=$$(gofmt -l $$($(GO) list -f '{{.Dir}}' ./...)); \
	if [ -n "$$unformatted" ]; then echo "not formatted, run make fmt:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(STATICCHECK) ./...
	$(GO) mod tidy -diff

check: lint test race spec

$(STATICCHECK):
	GOBIN=$(CURDIR)/bin $(GO) install honnef.co/go/tools/cmd/staticcheck@v0.8.2
	mv bin/staticcheck $@

clean:
	rm -rf bin
