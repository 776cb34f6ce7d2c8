/* wgmma_operands.h: for R registers of D: the list in the text of an asm statement, the operands
 * that go with it, and NEXT_R(k): the number of the k-th operand behind them. */
#pragma once

#define TO_2 "%0,%1"
#define TO_4 TO_2 ",%2,%3"
#define TO_8 TO_4 ",%4,%5,%6,%7"
#define TO_12 TO_8 ",%8,%9,%10,%11"
#define TO_16 TO_12 ",%12,%13,%14,%15"
#define TO_32 TO_16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define TO_64                                                        \
  TO_32                                                              \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47" \
  ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define TO_96                                                        \
  TO_64                                                              \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79" \
  ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define TO_128                                                                   \
  TO_96                                                                          \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111" \
  ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define LIST_2 "{" TO_2 "}"
#define LIST_4 "{" TO_4 "}"
#define LIST_8 "{" TO_8 "}"
#define LIST_12 "{" TO_12 "}"
#define LIST_16 "{" TO_16 "}"
#define LIST_32 "{" TO_32 "}"
#define LIST_64 "{" TO_64 "}"
#define LIST_96 "{" TO_96 "}"
#define LIST_128 "{" TO_128 "}"

#define FOUR_AT(d, i) "+r"(d[i]), "+r"(d[(i) + 1]), "+r"(d[(i) + 2]), "+r"(d[(i) + 3])
#define SIXTEEN_AT(d, i) \
  FOUR_AT(d, i), FOUR_AT(d, (i) + 4), FOUR_AT(d, (i) + 8), FOUR_AT(d, (i) + 12)
#define TIED_2(d) "+r"(d[0]), "+r"(d[1])
#define TIED_4(d) FOUR_AT(d, 0)
#define TIED_8(d) TIED_4(d), FOUR_AT(d, 4)
#define TIED_12(d) TIED_8(d), FOUR_AT(d, 8)
#define TIED_16(d) SIXTEEN_AT(d, 0)
#define TIED_32(d) TIED_16(d), SIXTEEN_AT(d, 16)
#define TIED_64(d) TIED_32(d), SIXTEEN_AT(d, 32), SIXTEEN_AT(d, 48)
#define TIED_96(d) TIED_64(d), SIXTEEN_AT(d, 64), SIXTEEN_AT(d, 80)
#define TIED_128(d) TIED_96(d), SIXTEEN_AT(d, 96), SIXTEEN_AT(d, 112)

#define CHOOSE_0(a, b, c, d, e, f) a
#define CHOOSE_1(a, b, c, d, e, f) b
#define CHOOSE_2(a, b, c, d, e, f) c
#define CHOOSE_3(a, b, c, d, e, f) d
#define CHOOSE_4(a, b, c, d, e, f) e
#define CHOOSE_5(a, b, c, d, e, f) f
#define NEXT_2(k) CHOOSE_##k("%2", "%3", "%4", "%5", "%6", "%7")
#define NEXT_4(k) CHOOSE_##k("%4", "%5", "%6", "%7", "%8", "%9")
#define NEXT_8(k) CHOOSE_##k("%8", "%9", "%10", "%11", "%12", "%13")
#define NEXT_12(k) CHOOSE_##k("%12", "%13", "%14", "%15", "%16", "%17")
#define NEXT_16(k) CHOOSE_##k("%16", "%17", "%18", "%19", "%20", "%21")
#define NEXT_32(k) CHOOSE_##k("%32", "%33", "%34", "%35", "%36", "%37")
#define NEXT_64(k) CHOOSE_##k("%64", "%65", "%66", "%67", "%68", "%69")
#define NEXT_96(k) CHOOSE_##k("%96", "%97", "%98", "%99", "%100", "%101")
#define NEXT_128(k) CHOOSE_##k("%128", "%129", "%130", "%131", "%132", "%133")
