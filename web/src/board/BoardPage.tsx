import { DndContext, DragOverlay, MeasuringStrategy } from '@dnd-kit/core'
import { useNavigate } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { useCallback, useMemo, useRef, useState } from 'react'
import { useSearch } from '@tanstack/react-router'
import { Header } from '@/app/Header'
import { useMay } from '@/app/may'
import { useSquad } from '@/app/SquadContext'
import { Button } from '@/ui/Button'
import { ErrorState, Skeleton } from '@/ui/States'
import { announcements } from './announce'
import { BulkBar } from './BulkBar'
import { Card } from './Card'
import { Column } from './Column'
import { ColumnJump } from './ColumnJump'
import { nearestCard } from './drag'
import { Filters } from './Filters'
import { NewTaskDialog } from './NewTaskDialog'
import { COLUMNS, columnsOf, type Filter, labelsOf, matches } from './order'
import { Pulse } from './Pulse'
import { QuickAdd } from './QuickAdd'
import { useBoard } from './useBoard'
import { useDragBoard } from './useDragBoard'
import { useMove } from './useMove'

export function BoardPage() {
  const squad = useSquad()
  const board = useBoard(squad.id)
  const filter: Filter = useSearch({ from: '/frame/squads/$squadId/board' })
  const navigate = useNavigate({ from: '/squads/$squadId/board' })
  const [adding, setAdding] = useState<'backlog' | 'todo'>()
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const move = useMove(squad.id)
  const may = useMay(squad.id, 'member')

  const tasks = board.tasks.data
  const columns = useMemo(() => columnsOf((tasks ?? []).filter((task) => matches(task, filter))), [tasks, filter])
  const labels = useMemo(() => labelsOf(tasks ?? []), [tasks])
  const drag = useDragBoard(columns, board.taskById, move.mutate)
  const toggle = useCallback((id: string) => setSelected((old) => {
    const next = new Set(old)
    if (!next.delete(id)) next.add(id)
    return next
  }), [])
  const scroller = useRef<HTMLDivElement>(null)
  return (
    <>
      <Header title="Board" about={tasks && <Pulse working={board.working} waiting={board.waiting} />}>
        <Filters filter={filter} members={board.members} repositories={board.repositories} labels={labels} onChange={(next) => void navigate({ search: next, replace: true })} />
        {may && <Button look="primary" onClick={() => setAdding('todo')}><Plus aria-hidden className="size-4" />New task</Button>}
      </Header>
      {board.tasks.isError && !tasks ? <ErrorState error={board.tasks.error} what="The board" retry={() => void board.tasks.refetch()} /> : (
        <DndContext sensors={drag.sensors} collisionDetection={nearestCard} measuring={{ droppable: { strategy: MeasuringStrategy.WhileDragging } }} accessibility={announcements(board.taskById)} {...drag.handlers}>
          {tasks && <ColumnJump columns={columns} scroller={scroller} />}
          <div ref={scroller} className="flex min-h-0 flex-1 snap-x snap-mandatory gap-3 overflow-x-auto p-3 sm:snap-none sm:px-4">
            {!tasks ? <BoardSkeleton /> : COLUMNS.map(({ status, name }) => (
              <Column
                key={status} status={status} name={name} tasks={columns[status]} cardOf={board.cardOf} selected={selected} carrying={drag.lifted !== undefined} onSelect={may ? toggle : undefined}
                onAdd={may && (status === 'backlog' || status === 'todo') ? setAdding : undefined}
                landing={drag.landing?.status === status ? (drag.landing.card ?? 'here') : undefined}
              />
            ))}
          </div>
          {/* While it flies to its place the card must not catch the next grip. */}
          <DragOverlay className="pointer-events-none" dropAnimation={{ duration: 140, easing: 'ease-out' }}>{drag.lifted && <Card {...board.cardOf(drag.lifted)} lifted />}</DragOverlay>
        </DndContext>
      )}
      {may && <QuickAdd squad={squad.id} repositories={board.repositories} />}
      <BulkBar squad={squad.id} ids={[...selected]} members={board.members} onDone={() => setSelected(new Set())} />
      {adding && <NewTaskDialog squad={squad.id} status={adding} members={board.members} repositories={board.repositories} tasks={tasks ?? []} onClose={() => setAdding(undefined)} />}
    </>
  )
}

function BoardSkeleton() {
  return (
    <div role="status" aria-label="Loading the board" className="flex flex-1 gap-3">
      {COLUMNS.map(({ status }, i) => (
        <div key={status} className="w-72 shrink-0 space-y-2 rounded-xl bg-sunken p-2 pt-10 lg:w-auto lg:flex-1">
          {Array.from({ length: 4 - (i % 3) }, (_, j) => <Skeleton key={j} className="h-24" />)}
        </div>
      ))}
    </div>
  )
}
