import { useNavigate, useSearch } from '@tanstack/react-router'
import { Bot, Boxes, FolderGit2, KeyRound, SlidersHorizontal, Users } from 'lucide-react'
import { Header } from '@/app/Header'
import { useMay } from '@/app/may'
import { useSquad } from '@/app/SquadContext'
import { Empty } from '@/ui/States'
import { TabBar, TabPanel, TabsRoot } from '@/ui/Tabs'
import { Credentials } from './Credentials'
import { Members } from './Members'
import { People } from './People'
import { Policy } from './Policy'
import { Repositories } from './Repositories'
import { Templates } from './Templates'

const PANEL = 'min-h-0 flex-1 overflow-y-auto'

export function SquadPage() {
  const squad = useSquad()
  const { tab = 'members' } = useSearch({ from: '/frame/squads/$squadId/settings' })
  const navigate = useNavigate({ from: '/squads/$squadId/settings' })
  const may = useMay(squad.id, 'admin')
  return (
    <>
      <Header title={squad.name} about={squad.description || 'Who works here, on what, and within which limits'} />
      <TabsRoot value={tab} onValueChange={(next) => void navigate({ search: next === 'members' ? {} : { tab: next }, replace: true })} className="flex min-h-0 flex-1 flex-col">
        <TabBar
          label="Squad"
          tabs={[
            { value: 'members', label: 'Members', icon: <Bot aria-hidden /> },
            { value: 'people', label: 'People', icon: <Users aria-hidden /> },
            { value: 'repositories', label: 'Repositories', icon: <FolderGit2 aria-hidden /> },
            ...(may ? [{ value: 'credentials', label: 'Credentials', icon: <KeyRound aria-hidden /> }] : []),
            { value: 'policy', label: 'Budget and policy', icon: <SlidersHorizontal aria-hidden /> },
            { value: 'templates', label: 'Templates', icon: <Boxes aria-hidden /> },
          ]}
        />
        <TabPanel value="members" className={PANEL}><Members squad={squad.id} /></TabPanel>
        <TabPanel value="people" className={PANEL}><People squad={squad.id} /></TabPanel>
        <TabPanel value="repositories" className={PANEL}><Repositories squad={squad.id} /></TabPanel>
        <TabPanel value="credentials" className={PANEL}>{may ? <Credentials squad={squad.id} /> : <Empty icon={<KeyRound aria-hidden />} title="For administrators of the squad">Only they see which credentials there are.</Empty>}</TabPanel>
        <TabPanel value="policy" className={PANEL}><Policy key={squad.id} squad={squad} /></TabPanel>
        <TabPanel value="templates" className={PANEL}><Templates /></TabPanel>
      </TabsRoot>
    </>
  )
}
