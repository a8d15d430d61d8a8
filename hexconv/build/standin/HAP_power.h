/* A stand-in: the requests for power that a session makes. Members that it does not set are left out. */
#ifndef HAP_POWER_H
#define HAP_POWER_H
typedef enum { HAP_power_set_apptype = 1, HAP_power_set_HVX, HAP_power_set_HMX, HAP_power_set_DCVS_v3, HAP_power_set_HMX_v2 } HAP_Power_request_type;
typedef enum { HAP_POWER_UNKNOWN_CLIENT_CLASS = 0, HAP_POWER_COMPUTE_CLIENT_CLASS = 4 } HAP_power_app_type_payload;
enum { HAP_DCVS_V2_PERFORMANCE_MODE = 4 };
typedef enum { HAP_DCVS_VCORNER_DISABLE = 0, HAP_DCVS_VCORNER_MAX = 255 } HAP_dcvs_voltage_corner_t;
typedef struct {
    HAP_dcvs_voltage_corner_t target_corner, min_corner, max_corner;
} HAP_dcvs_v3_params_t;
typedef struct {
    unsigned char set_dcvs_enable, dcvs_enable;
    unsigned int dcvs_option;
    unsigned char set_core_params, set_bus_params;
    HAP_dcvs_v3_params_t core_params, bus_params;
    unsigned char set_sleep_disable, sleep_disable;
} HAP_power_dcvs_v3_payload;
typedef struct {
    unsigned char power_up;
} HAP_power_hvx_payload;
typedef struct {
    unsigned char set_power, power_up;
} HAP_power_hmx_v2_payload;
typedef struct {
    HAP_Power_request_type type;
    union {
        HAP_power_app_type_payload apptype;
        HAP_power_dcvs_v3_payload dcvs_v3;
        HAP_power_hvx_payload hvx, hmx;
        HAP_power_hmx_v2_payload hmx_v2;
    };
} HAP_power_request_t;
/* 0: granted. The context is any address that is one client's alone. */
int HAP_power_set(void *context, HAP_power_request_t *request);
int HAP_power_destroy_client(void *context);
#endif
