#!/bin/sh
#SBATCH --job-name={{name}}
#SBATCH --nodes={{nodes}}
#SBATCH --nodelist={{hosts}}
#SBATCH --ntasks-per-node={{ranks_per_host}}
#SBATCH --time={{minutes}}
#SBATCH --output={{directory}}/slurm.out
{{command}}
