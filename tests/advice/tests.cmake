hone_test_tool(advice_planted planted.c lab.c live.c networks.c)
