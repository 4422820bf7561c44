/* Nothing: kernels of plugins bring all of their text (driver/plugin.c). */
