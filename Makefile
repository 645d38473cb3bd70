# Every target sets up all it needs in .venv.
.PHONY: setup demo test check format docs results wheel bench clean

READY := .venv/.ready
BIN := .venv/bin

setup: $(READY)

$(READY): pyproject.toml constraints.txt scripts/setup.sh
	@bash scripts/setup.sh

demo: $(READY)
	@$(BIN)/perdure run demo-experts.toml --quiet
	@$(BIN)/perdure run demo.toml --videos 1
	@$(BIN)/perdure report runs/demo --ste runs/demo-experts

# The tests compare with the real l2logger, l2metrics, openpi-client, vla-eval and Minari, in environments of their own.
test: $(READY)
	@bash scripts/l2m_env.sh
	@bash scripts/openpi_env.sh
	@bash scripts/peers_env.sh
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# A broken link or reference fails. Nothing is fetched, and the site loads nothing from elsewhere.
docs: $(READY)
	@rm -rf build/docs
	@$(BIN)/sphinx-build -q -E -W --keep-going -c docs -d build/doctrees . build/docs
	@! grep -rEl '<(script|img|iframe|link)[^>]* (src|href)="(https?:)?//|url\(.?(https?:)?//' \
	  --include='*.html' --include='*.css' build/docs || { echo "docs: these load from elsewhere"; false; }
	@echo "docs: build/docs/index.html"

# Tables, figures and reports of docs/results, from the runs that are there.
results: $(READY)
	@$(BIN)/python studies/pages.py

# In an environment of its own.
wheel:
	@bash scripts/wheel_test.sh

# All of them, though one misses what it is to reach; then that fails.
BENCHMARKS := spine state measure scale metaworld libero evaluation sequence_bc openloris_render training sac meta learners

bench: $(READY)
	@bash benchmarks/tella_env.sh
	@bash scripts/l2m_env.sh
	@bash benchmarks/libero_env.sh
	@bash benchmarks/avalanche_env.sh
	@bash benchmarks/jax_env.sh
	@missed=; for name in $(BENCHMARKS); do \
	  $(BIN)/python benchmarks/$$name.py || missed="$$missed $$name"; done; \
	  [ -z "$$missed" ] || { echo "bench: not all reached:$$missed"; false; }

clean:
	rm -rf .venv .venv-tella .venv-l2m .venv-openpi .venv-peers .venv-avalanche .venv-jax .venv-libero build runs
