#!/usr/bin/env bats
# common/tensor_map.h and build/common/tensor-map: rules, bytes, pictures.

load helpers
tensor_map=build/common/tensor-map
programs=build/tests/tensor_map

answers() { python3 -c 'import lzma, sys; print(lzma.open(sys.argv[1], "rt").read(), end="")' "tests/tensor_map/$1.csv.xz" 2>/dev/null; }

@test "each rule broken alone: its message, and the fix that it names" {
  run -0 $programs/rules
  [ "${lines[-1]}" = "PASS rules: each rule's message, its fix, byte counts" ]
}

@test "explaining, packing and unpacking allocate nothing" {
  run -0 nm -u build/common/tensor_map.o build/common/tensor_map_explain.o
  allocating=$(grep -v __asan <<<"$output" | grep -E 'alloc|strdup|asprintf|_Zn' || true)
  [ -z "$allocating" ]
}

@test "recorded answers of an H200 to tiled maps: rules and bytes" {
  run -0 $tensor_map verify < <(answers tiled)
  [ "${lines[0]}" = "rules: 4521 agree, 0 differ" ]
  [[ ${lines[1]} =~ ^"bytes: "[0-9]{4}" equal, 0 differ"$ ]]
}

@test "recorded answers of an H200 to im2col maps: rules and bytes" {
  run -0 $tensor_map verify < <(answers im2col)
  [ "${lines[0]}" = "rules: 2300 agree, 0 differ" ]
  [[ ${lines[1]} =~ ^"bytes: "[0-9]{4}" equal, 0 differ"$ ]]
}

@test "verify finds a single changed bit, and shows the line" {
  accepted=$(answers tiled | grep -m 1 ',0,[0-9a-f]\{256\}$')
  last=${accepted: -1}
  run -1 $tensor_map verify <<<"${accepted%?}$(printf %x $((16#$last ^ 1)))"
  [[ ${lines[0]} == "line 1: "* ]]
  [ "${lines[1]}" = "  the bytes differ" ]
  [ "${lines[-2]}" = "rules: 1 agree, 0 differ" ]
  [ "${lines[-1]}" = "bytes: 0 equal, 1 differ" ]
}

@test "verify finds a wrong answer, and says what our rules think" {
  accepted=$(answers tiled | grep -m 1 ',0,[0-9a-f]\{256\}$')
  run -1 $tensor_map verify <<<"${accepted%,0,*},1,"
  [[ $output == *"the driver refuses it, our rules say:"*"nothing is wrong"* ]]
  [[ $output == *"rules: 0 agree, 1 differ"* ]]
  refused="9,2,7f0000000000,4096:4096:1:1:1,8200:0:0:0,64:64:1:1:1,1:1:1:1:1,0,3,0,0,0,$(printf %0256d 0)"
  run -1 $tensor_map verify <<<"$refused"
  [[ $output == *"the driver accepts it, our rules say:"*"stride_bytes[0] = 8200 is not a multiple of 16"* ]]
}

@test "verify refuses what are no answers" {
  for text in "" "# a note" "1,2,3" "9,2,7f0000000000,4096:4096,1,1,1,0,0,0,0,1," \
    "9,2,7f0000000000,4096:4096:1:1:1,8192:0:0:0,64:64:1:1:1,1:1:1:1:1,0,0,0,0,0,123" \
    "9,2,7f0000000000,4096:4096:1:1:1,8192:0:0:0,64:64:1:1:1,1:1:1:1:1,0,0,0,0,201," \
    "9,4294967298,7f0000000000,4096:4096:1:1:1,8192:0:0:0,64:64:1:1:1,1:1:1:1:1,0,0,0,0,1," \
    "9,2,7f0000000000,4096:4096:1:1:1,8192:0:0:0,4294967360:64:1:1:1,1:1:1:1:1,0,0,0,0,1," \
    "9,2,7f0000000000,99999999999999999999:1:1:1:1,8192:0:0:0,64:64:1:1:1,1:1:1:1:1,0,0,0,0,1," \
    "$(printf '1%.0s' {1..3000})"; do
    run $tensor_map verify <<<"$text"
    echo "$text: $status $output"
    [ "$status" -eq 2 ]
  done
}

@test "explain draws a legal map" {
  run -0 $tensor_map explain --type bf16 --size 4096,4096 --box 64,128 --swizzle 128B
  [[ $output == *"tensor    4096 x 4096 of BFLOAT16 (2 bytes)"* ]]
  [[ $output == *"stride    8192 bytes between neighbours in dimension 1, packed"* ]]
  [[ $output == *"box       64 x 128: 128 rows of 128 bytes"* ]]
  [[ $output == *"tiles     64 x 32 = 2048 to cover the tensor, exactly"* ]]
  [[ $output == *"copy      16384 bytes: the count for mbarrier.arrive.expect_tx"* ]]
  [[ $output == *"shared    16384 bytes, aligned to 1024"* ]]
  [[ $output == *"row  3  3 2 1 0 7 6 5 4"* ]]
}

@test "explain draws the box around the tensor where the box is larger" {
  run $tensor_map explain --type f32 --size 32,4 --box 64,128
  [ "${lines[3]}" = "  +-------------------------+---------------------------------+" ]
  [ "${lines[4]}" = "  | tensor 32 x 4           | box 64 x 128                    |" ]
  [ "${lines[5]}" = "  +-------------------------+                                 |" ]
  [ "${lines[7]}" = "  +-----------------------------------------------------------+" ]
  run $tensor_map explain --type f32 --size 128,4 --box 64,128
  [ "${lines[4]}" = "  |                         | tensor 128 x 4                  |" ]
  [ "${lines[6]}" = "  | box 64 x 128            |" ]
}

@test "explain reports when shared memory needs more than the copy's bytes" {
  run -0 $tensor_map explain --type f32 --size 1025,300 --stride 4112 --box 4,5 --swizzle 64B \
    --element-stride 1,2
  [[ $output == *"4112 bytes between neighbours in dimension 1, the last 12 unused"* ]]
  [[ $output == *"box       4 x 5, of which 4 x 3 arrive (element strides 1 2): 3 rows of 16 bytes"* ]]
  [[ $output == *"copy      48 bytes"* ]]
  [[ $output == *"shared    192 bytes, aligned to 512"* ]]
  [[ $output == *"rows lie a whole span of 64 bytes apart"* ]]
}

@test "explain lists every broken rule, exit 2" {
  run -2 $tensor_map explain --type f32 --size 1025,300 --box 64,257 --swizzle 128B --fill nan \
    --address 0x8 --l2 7
  [ "${lines[0]}" = "5 rules broken:" ]
  [ "${#lines[@]}" -eq 6 ]
  [[ ${lines[1]} == "address = 0x8 is not a multiple of 16: "* ]]
  [[ ${lines[2]} == "stride_bytes[0] = 4100 is not a multiple of 16: pad each row to 1028 elements (4112 bytes)"* ]]
  [[ ${lines[3]} == "box[1] = 257 is not 1 to 256: "* ]]
  [[ ${lines[4]} == "swizzle = 128B spans 128 bytes, but box[0] = 64 makes rows of 256 bytes: "* ]]
  [[ ${lines[5]} == "l2_promotion = 7 is not a CUtensorMapL2promotion: "* ]]
}

@test "explain: 6 dimensions, and modes by number, reach the rules (tensor_map/rules.cu has all of these)" {
  run -2 $tensor_map explain --type u8 --size 16,1,1,1,1,1 --box 16,1,1,1,1,1
  [[ $output == "1 rule broken:"$'\n'"dimensions = 6 is not 1 to 5"* ]]
  run -2 $tensor_map explain --type 16 --size 64,64 --box 16,16 --interleave 5 --swizzle 9 --fill 2
  [[ $output == *"type = 16 is no"*"interleave = 5 is no"*"swizzle = 9 is no"*"fill = 2 is no"* ]]
}

@test "decode gives back what explain encoded, from words of any width" {
  run -0 $tensor_map explain --type tf32 --size 1000,77,5 --stride 4000,320000 --box 32,16,3 \
    --swizzle 128B --l2 256B --fill nan --address 0x7f0012345600 --hex
  picture=$(sed '$d' <<<"$output") hex=${lines[-1]}
  words64=$(sed 's/.\{16\}/0x& /g' <<<"$hex")
  words32= bytes=
  for word in $(sed 's/.\{16\}/& /g' <<<"$hex"); do
    words32+="0x${word:8} 0x${word:0:8} "
    for at in 14 12 10 8 6 4 2 0; do bytes+="0x${word:at:2}, "; done
  done
  for form in "$hex" "$words64" "$words32" "{$bytes}" \
    "$(sed 's/\(0x[^ ]* 0x[^ ]*\) /0x7fff0010: \1\n/g' <<<"$words64")"; do
    run $tensor_map decode "$form"
    echo "$form"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$output" = "$picture" ]
  done
}

@test "decode recognises an im2col map, foreign bytes, bytes changed by hand, and bad input" {
  im2col=$(answers im2col | grep -m 1 ',0,[0-9a-f]\{256\}$')
  run -0 $tensor_map decode "${im2col##*,}"
  [[ ${lines[0]} == "im2col map of "*" dimensions, "* ]]
  run -2 $tensor_map decode "$(printf 'f%.0s' {1..256})"
  [[ $output == *"are not a tensor map"* ]]
  tiled=$(answers tiled | grep -m 1 ',0,[0-9a-f]\{256\}$')
  changed=${tiled##*,}
  run -0 $tensor_map decode "${changed:0:255}1"
  [[ $output == *"The last 64 bytes are not what the encoder writes there"* ]]
  run -2 $tensor_map decode 1234
  [[ $output == *"256 hexadecimal digits"* ]]
  run -2 $tensor_map decode "xyz"
}

@test "bad arguments: a message that names them, exit 2" {
  while IFS='|' read -r arguments message; do
    run $tensor_map $arguments
    echo "$arguments: $status $output"
    [ "$status" -eq 2 ]
    [[ $output == *"$message"* ]]
  done <<'END'
|usage:
paint|the command is 'paint', but must be one of explain, decode, verify
explain|needs --type, --size and --box
explain --type f99 --size 1 --box 1|--type is f99, but must be one of: UINT8
explain --type u8 --size 16,8 --box 16|--box has 1 numbers, but --size has 2
explain --type u8 --size 16,8 --box 16,8 --stride 16,16|--stride has 2 numbers, but --size has 2: one fewer
explain --type u8 --size 16,x --box 16,8|--size 16,x: expected whole numbers
explain --type u8 --size 16 --box|--box needs a value
explain --type u8 --size 16 --box 16 --colour red|there is no option --colour
explain --type u8 --size 16 --box 16 --swizzle 96B|--swizzle is 96B, but must be one of: NONE 32B 64B 128B
explain --type u8 --size 16 --box 16 --fill blue|neither zero nor nan
explain --type u8 --size 16,8 --box 16,8 --element-stride 4294967297,1|4294967297 is larger than 4294967295
explain --type u8 --size 16,8 --box 4294967312,8|4294967312 is larger than 4294967295
explain --type u8 --size 18446744073709551616,8 --box 16,8|18446744073709551616 is larger than 18446744073709551615
explain --type u8 --size 16,8 --box 16,8 --stride 99999999999999999999|larger than 18446744073709551615
explain --type u8 --size 16 --box 16 --address 0x10000000000000000|larger than 18446744073709551615
explain --type u8 --size 16 --box 16 --address 0x|is not a number
explain --type u8 --size 16 --box 16 --swizzle 4294967296|larger than 4294967295
explain --type u8 --size 16, --box 16|expected whole numbers
explain --type u8 --size -1 --box 16|expected whole numbers
explain --type u8 --size 16 --box 16 --box=8|--box is given twice
explain --type u8 --size 16 --box 16 --hex --hex|--hex is given twice
explain --type 010 --size 16 --box 16|--type is 010, but must be one of: UINT8
explain --type u8 --size 016 --box 16|expected whole numbers, without a zero in front
explain --type u8 --size 16 --box 16,010|expected whole numbers, without a zero in front
explain --type u8 --size 16 --box 16 --address 010|--address 010 is not a number
explain --type= --size 16 --box 16|--type needs a value
explain --type u8 --size 16 --box 16 --hex=1|there is no option --hex=1
verify now|verify takes no arguments
END
}

@test "an option and its value in one word or two; 0x10 is sixteen" {
  run -0 $tensor_map explain --type bf16 --size 64,128 --box 16,10 --stride 128 --address 0x100
  expected=$output
  [[ $output == *"box       16 x 10: "* ]]
  run -0 $tensor_map explain --type=bf16 --size=0x40,128 --box=0x10,10 --stride=128 --address=256
  [ "$output" = "$expected" ]
}

@test "-h and --help, wherever they are: the usage, exit 0" {
  for arguments in -h --help "explain -h" "decode --help" "verify -h" "explain --type u8 --help"; do
    echo "$arguments"
    run -0 $tensor_map $arguments
    [[ ${lines[0]} == "usage: tensor-map explain"* ]]
  done
}

@test "output that cannot be written is said, exit 1" {
  for arguments in --help "explain --type u8 --size 16 --box 16"; do
    run -1 bash -c "$tensor_map $arguments >/dev/full"
    [ "$output" = "tensor-map: the output could not be written" ]
    run -1 bash -c "$tensor_map $arguments >&-"
  done
}

@test "encode: the driver's bytes are the packed ones" {
  run -0 common/make/run-program $programs/encode
  [ "${lines[-1]}" = "PASS encode: encoded and packed bytes are equal" ]
}

@test "encode: a broken map is explained under its name, exit 2" {
  run -2 common/make/run-program $programs/encode --broken 1
  [[ $output == *"tensor map matrix breaks 2 rules:"* ]]
  [[ $output == *"stride_bytes[0] = 2002 is not a multiple of 16: pad each row to 1008 elements (2016 bytes)"* ]]
  [[ $output == *"box[1] = 512 is not 1 to 256"* ]]
}
