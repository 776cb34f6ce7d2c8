#!/usr/bin/env bats
# common/make/find-bats and common/make/fetch-wheels: which bats will do, and what is said when fetching fails. A
# python3 of the test's own stands for pip, so that no network is needed.

load helpers

setup() {
  begin_test
  bin=$BATS_TEST_TMPDIR/bin
  build=$BATS_TEST_TMPDIR/build
  mkdir -p "$bin" "$build"
}

installed_bats() { # VERSION LINE
  script "$bin/bats" "echo '$1'"
}

# A python3 whose pip prints TEXT, fails, and says which of pip's settings it sees.
failing_pip() { # TEXT
  cat >"$bin/python3" <<END
#!/bin/bash
case "\$*" in *--version*) exit 0 ;; esac
case "\$*" in *--isolated*) second=.isolated ;; esac
env | grep ^PIP_ | sort >"$BATS_TEST_TMPDIR/settings\$second"
echo "\$*" >>"$BATS_TEST_TMPDIR/calls"
cat <<'TEXT'
$1
TEXT
exit 1
END
  chmod +x "$bin/python3"
}

fetch() { PATH=$bin:$PATH run -2 common/make/fetch-wheels "the thing" "$build/thing" "$BATS_TEST_TMPDIR/list"; }

@test "bats 1.8 and newer will do, an older one or one without a version will not" {
  local version
  for version in 1.8.0 1.8.2 1.10.0 2.0.0; do
    installed_bats "Bats $version"
    PATH=$bin:$PATH run -0 common/make/find-bats "$build"
    [ "$output" = "$bin/bats" ]
  done
  failing_pip "no"
  for version in "Bats 1.2.1" "Bats 1.7.0" "nonsense"; do
    installed_bats "$version"
    PATH=$bin:$PATH run -1 common/make/find-bats --installed
    PATH=$bin:$PATH run -2 common/make/find-bats "$build"
    [[ $output == *"but the tests need 1.8 or newer"* ]]
    [[ $output == *"By hand: install bats 1.8 or newer"* ]]
  done
}

@test "no settings of pip but those for reaching an index get through" {
  failing_pip "no"
  export PIP_USER=1 PIP_REQUIRE_VIRTUALENV=1 PIP_PREFIX=/p PIP_TARGET=/t PIP_ROOT=/r PIP_NO_INDEX=1 \
    PIP_NO_BINARY=:all: PIP_INDEX_URL=https://index.example/simple PIP_CONFIG_FILE=/my/pip.conf
  fetch
  cat "$BATS_TEST_TMPDIR/settings"
  grep -qx 'PIP_INDEX_URL=https://index.example/simple' "$BATS_TEST_TMPDIR/settings"
  grep -qx 'PIP_CONFIG_FILE=/my/pip.conf' "$BATS_TEST_TMPDIR/settings"
  grep -qx 'PIP_REQUIRE_VIRTUALENV=0' "$BATS_TEST_TMPDIR/settings"
  grep -qx 'PIP_NO_INDEX=0' "$BATS_TEST_TMPDIR/settings"
  ! grep -E 'USER|PREFIX|TARGET|ROOT|NO_BINARY' "$BATS_TEST_TMPDIR/settings" || false
  # What a file of settings does can be left out only as a whole, the one that the variable names too.
  ! grep CONFIG_FILE "$BATS_TEST_TMPDIR/settings.isolated" || false
  [ "$(grep -c -- --isolated "$BATS_TEST_TMPDIR/calls")" -eq 1 ]
}

@test "the true cause is named: disk full, no network, certificate, permission, anything else" {
  while IFS='|' read -r text cause; do
    failing_pip "$text"
    fetch
    echo "$output"
    [[ $output == *"the thing could not be fetched. $cause"* ]]
    [[ $output == *"$text"* ]]
    [ ! -e "$build/thing" ]
  done <<'END'
ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device|The disk is full: 
WARNING: Retrying (Retry(total=4)) after connection broken by NewConnectionError|The package index was not reached
ReadTimeoutError: HTTPSConnectionPool: Read timed out.|The package index was not reached
OSError: Could not find a suitable TLS CA certificate bundle, invalid path: /nope|The file of certificates does not exist: see PIP_CERT
SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]'))|The package index showed a certificate
ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/x'|A file could not be written.
ERROR: Could not find a version that satisfies the requirement x==1 (from versions: none)|The package index does not have it
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.|pip could not do it.
END
}

@test "the folders that PYTHONHOME and PYTHONPATH name are not asked for pip" {
  cat >"$bin/python3" <<'END'
#!/bin/bash
[ -z "${PYTHONHOME-}${PYTHONPATH-}" ] && [[ "$*" == *--version* ]]
END
  chmod +x "$bin/python3"
  installed_bats "Bats 1.2.1"
  export PYTHONHOME=/nothing PYTHONPATH=/nothing
  PATH=$bin:$PATH run common/make/find-bats "$build"
  [[ $output == *"bats could not be fetched. pip could not do it."* ]]
  # Neither a CUDA_HOME nor an nvcc on PATH: the compiler is to be fetched, too.
  PATH=$bin:/usr/bin:/bin CUDA_HOME= run common/make/find-toolkit "$build" check
  [[ $output != *"python3 with pip"* ]]
}

@test "no process that it started outlives it, so that a pipe it prints to is closed" {
  failing_pip "no"
  PATH=$bin:$PATH common/make/fetch-wheels "the thing" "$build/thing" "$BATS_TEST_TMPDIR/list" \
    >"$BATS_TEST_TMPDIR/printed" 2>&1 || [ $? -eq 2 ]
  writing=$(find /proc/[0-9]*/fd -lname "$BATS_TEST_TMPDIR/printed" 2>/dev/null) || true
  echo "$writing"
  [ -z "$writing" ]
}

@test "a folder that cannot be written is said before anything is fetched" {
  failing_pip "never asked"
  touch "$build/thing"
  build=$build/thing fetch
  echo "$output"
  [[ $output == *"that folder cannot be written"* ]]
  [ ! -e "$BATS_TEST_TMPDIR/calls" ]
}

@test "without pip: which toolkit is wanted by hand, and what is typed then, for make and for emulate" {
  script "$bin/python3" 'exit 1'
  export PATH=$bin:/usr/bin:/bin CUDA_HOME=fetch
  NVIDIA_DRIVER=/nonexistent run -2 common/make/find-toolkit "$build" run
  [[ $output == *"install the CUDA Toolkit (13.0 or newer) by hand, and"$'\n'"type: make CUDA_HOME=/path/to/cuda" ]]
  NVIDIA_DRIVER=/ run -2 common/make/find-toolkit "$build" run
  [[ $output == *"install the CUDA Toolkit (12.5 or newer) by hand"* ]]
  NVIDIA_DRIVER=/ run -2 common/make/find-toolkit "$build" emulate
  [[ $output == *"(13.0 or newer) by hand, and"$'\n'"type: CUDA_HOME=/path/to/cuda emulate ..." ]]
}

@test "the pinned wheels have hashes" {
  for list in common/make/bats-requirements.txt common/make/toolkit-requirements.txt; do
    [ "$(grep -c '^[a-z]' $list)" -eq "$(grep -cE '^[a-z0-9-]+==[0-9.]+( --hash=sha256:[0-9a-f]{64}){1,2}$' $list)" ]
  done
}
