hone_test(test_rules test_rules.c fixture.c)
hone_test(test_findings_schema test_findings_schema.c fixture.c)
hone_ctest(advice_commands sh tests/rules/commands.sh $<TARGET_FILE:hone_cli>)
hone_test(test_foreign test_foreign.c foreign.c)
