#!/usr/bin/env bash
# price.sh: the price of a fetched tile, chapter 01's ways and TMA side by side.
set -eu
cd "$(dirname "$0")/.."
exec 01_tiledcopy_baseline/price.sh build/02_tma_load/price 02_tma_load/price.csv
