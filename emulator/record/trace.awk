# trace.awk RECORDING: the recording (RECORDING.md) in the Chrome trace format, for ui.perfetto.dev or
# chrome://tracing.
#
# Each cluster is a process; its warps, the copies in flight, the wgmmas of each warpgroup and the
# mbarriers are its threads. A time unit, which viewers take for a microsecond, is one warp instruction
# of the cluster, or a clock under EMULATOR_CLOCK. Everything that lasts is a complete event ("X"): a
# begin without an end cannot be written.
BEGIN {
  COPIES = 100000
  TENSOR = 200000
  separator = ""
  unit = "warp instruction of the cluster"
  print "{\"displayTimeUnit\": \"ns\", \"traceEvents\": ["
}

substr($0, length($0)) != (substr($0, 1, 1) == "[" ? "]" : "}") {
  print FILENAME " is cut off in line " FNR ": the trace ends there" > "/dev/stderr"
  exit
}

function line(text) {
  printf "%s%s", separator, text
  separator = ",\n"
}

# The string behind "name": in a definition, still escaped.
function string_of(name,  text, at, i, c) {
  at = index($0, "\"" name "\": \"")
  if (!at) return ""
  text = substr($0, at + length(name) + 5)
  for (i = 1; (c = substr(text, i, 1)) != "\"" && c != ""; i++)
    if (c == "\\") i++
  return substr(text, 1, i - 1)
}

function number_of(name,  at) {
  at = index($0, "\"" name "\": ")
  return at ? substr($0, at + length(name) + 4) + 0 : -1
}

# A string without its quotes, of a field of an event.
function word(field) {
  gsub(/[]"]/, "", field)
  return field
}

function named(kind, thread, name) {
  line("{\"ph\": \"M\", \"name\": \"" kind "\", \"pid\": " process ", \"tid\": " thread ", \"args\": {\"name\": \"" name "\"}}")
}

function lasting(thread, name, begin, end, category) {
  line("{\"ph\": \"X\", \"name\": \"" name "\", \"cat\": \"" category "\", \"pid\": " process ", \"tid\": " thread \
    ", \"ts\": " begin ", \"dur\": " (end > begin ? end - begin : 0) "}")
}

function instant(thread, name, time, category) {
  line("{\"ph\": \"i\", \"s\": \"t\", \"name\": \"" name "\", \"cat\": \"" category "\", \"pid\": " process ", \"tid\": " thread ", \"ts\": " time "}")
}

function counter(name, time, values) {
  line("{\"ph\": \"C\", \"name\": \"" name "\", \"pid\": " process ", \"tid\": 0, \"ts\": " time ", \"args\": {" values "}}")
}

function place_name(place) {
  return place in places ? places[place] : "?"
}

function warp_thread(warp) {
  if (!(warp in warp_seen)) {
    warp_seen[warp] = 1
    named("thread_name", warp + 1, (blocks > 1 ? "block " int(warp / per_block) " " : "") "warp " warp % per_block)
  }
  return warp + 1
}

# A row can show one thing at a time: while some lanes wait and others go on, it shows those that go on.
function end_step(warp, time) {
  if (warp in step_name) lasting(warp_thread(warp), step_name[warp], step_begin[warp], time, "step")
  delete step_name[warp]
}

function end_wait(warp, time) {
  if (warp in wait_name) lasting(warp_thread(warp), wait_name[warp], wait_begin[warp], time, "wait")
  delete wait_name[warp]
}

function name_lane(thread, name) {
  if (thread in lane_named) return
  lane_named[thread] = 1
  named("thread_name", thread, name)
}

# Copies overlap: each gets the first row that is free.
function free_lane(  lane) {
  for (lane = 0; lane in busy; lane++) continue
  busy[lane] = 1
  name_lane(COPIES + lane, "copy engine " lane)
  return lane
}

function end_copy(copy, time) {
  lasting(COPIES + copy_lane[copy], copy_name[copy], copy_begin[copy], time, "copy")
  delete busy[copy_lane[copy]]
  delete copy_begin[copy]
}

# The wgmmas of a warpgroup are one bar from the first that is issued until none is under way: dozens of them
# are, and each warp issues its share by itself.
function begin_wgmma(number, warp, time,  block) {
  block = int(warp / per_block)
  group_of[number] = block * 64 + int((warp % per_block) / 4)
  if (!under_way[group_of[number]]++) {
    group_begin[group_of[number]] = time
    name_lane(TENSOR + group_of[number], (blocks > 1 ? "block " block " " : "") "wgmma, group " int((warp % per_block) / 4))
  }
}

function end_wgmma(number, time,  group) {
  group = group_of[number]
  delete group_of[number]
  if (--under_way[group]) return
  lasting(TENSOR + group, "wgmma", group_begin[group], time, "wgmma")
}

function end_cluster(time,  each) {
  for (each in wait_name) end_wait(each, time)
  for (each in step_name) end_step(each, time)
  for (each in copy_begin) end_copy(each, time)
  for (each in group_of) end_wgmma(each, time)
}

/^\{"recording": .*"clock": "h200"/ {
  unit = "clock of a modelled H200"
  next
}

/^\{"file": [0-9]+, "path"/ {
  file = string_of("path")
  sub(/.*\//, "", file)
  files[number_of("file")] = file
  next
}

/^\{"place"/ {
  number = number_of("file")
  places[number_of("place")] = number >= 0 ? files[number] ":" number_of("line") : string_of("text")
  next
}

/^\{"launch"/ {
  kernels[number_of("launch")] = string_of("kernel")
  next
}

/^\{"cluster"/ {
  if (process) end_cluster(last_time)
  process++
  last_time = 0
  per_block = number_of("warps_per_block")
  blocks = gsub(/\[/, "[") - 1
  split("", warp_seen)
  split("", busy)
  split("", under_way)
  split("", lane_named)
  launch = number_of("launch")
  named("process_name", 0, "launch " launch ": " kernels[launch] ", cluster " number_of("cluster"))
  next
}

/^\{"end"/ {
  end_cluster(number_of("end"))
  next
}

/^\[/ {
  count = split(substr($0, 2), field, ",")
  kind = word(field[1])
  time = word(field[2]) + 0
  last_time = time
  if (kind == "bytes" || kind == "shared") next
  warp = word(field[3]) + 0
  if (kind == "step") {
    end_step(warp, time)
    end_wait(warp, time)
    step_name[warp] = place_name(word(field[5]))
    step_begin[warp] = time
  } else if (kind == "wait") {
    end_step(warp, time)
    end_wait(warp, time)
    wait_name[warp] = "waits at " place_name(word(field[5]))
    wait_begin[warp] = time
  } else if (kind == "woke") {
    end_wait(warp, time)
  } else if (kind == "exit") {
    end_step(warp, time)
  } else if (kind == "fence" || kind == "commit") {
    instant(warp_thread(warp), kind " at " place_name(word(field[5])), time, kind)
  } else if (kind == "copy") {
    copy_begin[warp] = time
    copy_name[warp] = word(field[7]) " " warp
    copy_lane[warp] = free_lane()
  } else if (kind == "landed") {
    if (warp in copy_begin) end_copy(warp, time)
  } else if (kind == "wgmma") {
    begin_wgmma(warp, word(field[4]) + 0, time)
  } else if (kind == "wgmma_done") {
    if (warp in group_of) end_wgmma(warp, time)
  } else if (kind == "mbarrier") {
    name = "mbarrier " (blocks > 1 ? int(warp / 16777216) ":" : "") warp % 16777216
    counter(name " phase", time, "\"phase\": " field[5])
    counter(name " pending", time, "\"arrivals\": " field[6] ", \"bytes\": " field[8])
  } else if (kind == "finding" || kind == "fault") {
    if (warp < 0) name_lane(0, "the cluster")
    instant(warp < 0 ? 0 : warp_thread(warp), kind " " word(field[6]), time, kind)
  }
}

END {
  if (process) end_cluster(last_time)
  print "\n], \"otherData\": {\"time\": \"a microsecond stands for one " unit "\"}}"
}
