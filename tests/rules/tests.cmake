hone_test(test_rules test_rules.c fixture.c)
hone_test(test_schema test_schema.c fixture.c)
hone_ctest(advice_commands sh tests/rules/commands.sh $<TARGET_FILE:hone_cli>)
