;;; contexture-sessions-tests.el --- Tests of the list of agents' sessions  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The list of the sessions of all agents, with a real server that imports
;; recordings from a folder of the test's own.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-sessions)

(defvar agent-shell--state)

(defun contexture-sessions-tests--rollout (id question answer &rest more)
  "Return a recording of Codex with ID, QUESTION and ANSWER, with MORE records."
  (let ((said (lambda (role kind text)
                (format "{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\
\"role\":%S,\"content\":[{\"type\":%S,\"text\":%S}]}}\n" role kind text))))
    (concat (format "{\"type\":\"session_meta\",\"payload\":{\"id\":%S,\"cwd\":%S,\
\"git\":{\"branch\":\"main\"}}}\n"
                    id (directory-file-name (expand-file-name default-directory)))
            (funcall said "user" "input_text" question)
            (funcall said "assistant" "output_text" answer)
            (apply #'concat more))))

(defun contexture-sessions-tests--record (name &rest contents)
  "Write a recording NAME with CONTENTS, as for a rollout."
  (let ((file (expand-file-name (concat "records/" name ".jsonl"))))
    (make-directory (file-name-directory file) t)
    (write-region (apply #'contexture-sessions-tests--rollout contents) nil file nil 'silent)
    file))

(defun contexture-sessions-tests--import ()
  "Import all recordings of the test."
  (contexture-request 'import-sessions
                      (list :paths (list (expand-file-name "records")))))

(defmacro contexture-sessions-tests--with (&rest body)
  "Run BODY with a server and the list of sessions, which reads no other places."
  (declare (indent 0) (debug t))
  `(contexture-test-with-server
     (cl-letf (((symbol-function 'contexture-sessions--import-all) #'ignore))
       (save-window-excursion
         (unwind-protect (progn ,@body)
           (when (get-buffer contexture-sessions-buffer)
             (kill-buffer contexture-sessions-buffer)))))))

(defun contexture-sessions-tests--titles ()
  "Return the titles of the sessions that are shown, in their order."
  (save-excursion
    (goto-char (point-min))
    (let (titles)
      (while (not (eobp))
        (when-let* ((session (contexture-sessions--at-point)))
          (push (plist-get session :session) titles))
        (forward-line 1))
      (nreverse titles))))

(defun contexture-sessions-tests--wait (titles)
  "Wait until the list shows TITLES."
  (llm-ert-wait-for (equal (contexture-sessions-tests--titles) titles)))

(defun contexture-sessions-tests--open ()
  "Show the list of the sessions of all projects."
  (contexture-sessions t)
  (llm-ert-wait-for (> (hash-table-count contexture-sessions--all) 0)))

(defun contexture-sessions-tests--tell (id state &optional process)
  "Tell the server, as a hook of Codex, that session ID is in STATE.
PROCESS is the number of the agent's process."
  (contexture-request 'pushed-context
                      (append (list :agent "codex" :agent-session id :state state)
                              (and process (list :process process)))))

(ert-deftest contexture-sessions-shows-waiting-ones-first-at-once ()
  (contexture-sessions-tests--with
    (dolist (name '("one" "two" "three"))
      (contexture-sessions-tests--record name (concat "id-" name) name (concat "done " name)))
    (contexture-sessions-tests--import)
    (contexture-sessions-tests--open)
    (should (equal (sort (contexture-sessions-tests--titles) #'string<)
                   '("one" "three" "two")))
    (should (string-match-p "codex .* main .*done one"
                            (replace-regexp-in-string "\n" " " (buffer-string))))
    (contexture-sessions-tests--tell "id-two" :waiting (emacs-pid))
    (llm-ert-wait-for (equal (car (contexture-sessions-tests--titles)) "two"))
    (should (string-prefix-p "waits " (buffer-string)))
    (should (string-match-p "1 waiting" (format "%s" header-line-format)))
    (contexture-sessions-tests--tell "id-two" :ended)
    (llm-ert-wait-for (string-match-p "^ended .*two" (buffer-string)))
    (should (equal (car (last (contexture-sessions-tests--titles))) "two"))))

(ert-deftest contexture-sessions-of-a-killed-agent-have-ended ()
  (contexture-sessions-tests--with
    (contexture-sessions-tests--record "one" "id-one" "one" "done")
    (contexture-sessions-tests--import)
    (contexture-sessions-tests--open)
    (let* ((process (start-process "agent" nil "sleep" "600"))
           (id (process-id process)))
      (contexture-sessions-tests--tell "id-one" :working id)
      (llm-ert-wait-for (string-prefix-p "working " (buffer-string)))
      (kill-process process)
      (llm-ert-wait-for (not (process-live-p process)))
      ;; No event tells this; the list looks by itself while it is shown.
      (contexture-sessions--look)
      (llm-ert-wait-for (string-prefix-p "ended " (buffer-string))))))

(ert-deftest contexture-sessions-without-hooks-says-only-that-a-call-is-open ()
  (contexture-sessions-tests--with
    (contexture-sessions-tests--record
     "one" "id-one" "one" "I look"
     "{\"type\":\"response_item\",\"timestamp\":\"" (format-time-string "%FT%TZ" nil t)
     "\",\"payload\":{\"type\":\"function_call\",\"name\":\"read\",\"call_id\":\"c\",\
\"arguments\":\"{}\"}}\n")
    (contexture-sessions-tests--import)
    (contexture-sessions-tests--open)
    (should (string-match-p "^call open .*a call is open since [0-9:]+; I look"
                            (buffer-string)))
    (should-not (string-match-p "waits" (buffer-string)))))

(ert-deftest contexture-sessions-are-searched-as-one-types ()
  (contexture-sessions-tests--with
    (contexture-sessions-tests--record "one" "id-one" "ports of the database" "It is 5433.")
    (contexture-sessions-tests--record "two" "id-two" "colors" "Blue.\\nUnseen words: zebra.")
    (contexture-sessions-tests--import)
    (contexture-sessions-tests--open)
    (contexture-sessions--seek "PORTS 5433")
    (should (equal (contexture-sessions-tests--titles) '("ports of the database")))
    ;; Each session has one of these words, and none has both.
    (contexture-sessions--seek "ports colors")
    (should-not (contexture-sessions-tests--titles))
    (contexture-sessions--seek "nothing has this")
    (should (string-prefix-p "No session has these words" (buffer-string)))
    (contexture-sessions--seek "")
    (should (= 2 (length (contexture-sessions-tests--titles))))
    (let ((long (mapconcat #'number-to-string (number-sequence 1 200) " ")))
      (contexture-sessions-tests--record "three" "id-three" "long" (concat long " zebu")))
    (contexture-sessions-tests--import)
    (llm-ert-wait-for (member "long" (contexture-sessions-tests--titles)))
    ;; The server knows the words of all messages.
    (contexture-sessions--seek "zebu")
    (contexture-sessions-tests--wait '("long"))))

(ert-deftest contexture-sessions-are-hidden-and-come-back ()
  (contexture-sessions-tests--with
    (contexture-sessions-tests--record "one" "id-one" "one" "done")
    (contexture-sessions-tests--record "two" "id-two" "two" "done")
    (contexture-sessions-tests--import)
    (contexture-sessions-tests--open)
    (goto-char (point-min))
    (let ((title (plist-get (contexture-sessions--at-point) :session)))
      (contexture-sessions-hide)
      (llm-ert-wait-for (not (member title (contexture-sessions-tests--titles))))
      (contexture-sessions-tests--import)
      (should-not (member title (contexture-sessions-tests--titles)))
      (contexture-request 'delete-session (list :session title :deleted :false))
      (llm-ert-wait-for (member title (contexture-sessions-tests--titles))))))

(ert-deftest contexture-sessions-copies-facts-into-a-new-conversation ()
  (contexture-sessions-tests--with
    (contexture-sessions-tests--record
     "one" "id-one" "We decided to use port 5433. Never edit src/db.toml." "done")
    (contexture-sessions-tests--import)
    (contexture-sessions-tests--open)
    (goto-char (point-min))
    (let (shown)
      (cl-letf (((symbol-function 'contexture-conversation)
                 (lambda (&optional session) (setq shown session))))
        (contexture-sessions-copy-facts)
        (llm-ert-wait-for shown))
      (let ((item (car (contexture-request
                        'list-items
                        (list :manager (plist-get (car (cl-remove-if-not
                                                        (lambda (it)
                                                          (equal (plist-get it :id) shown))
                                                        (contexture-request 'list-sessions)))
                                                  :manager))))))
        (should (string-match-p "5433" (plist-get item :content)))))))

(defun contexture-sessions-tests--entry (&rest plist)
  "Return an entry of a session of Claude Code with PLIST."
  (append plist (list :id "ses-1" :agent "claude" :agent-session "a-1"
                      :project (expand-file-name default-directory))))

(ert-deftest contexture-sessions-asks-for-all-that-it-reads ()
  (with-temp-buffer
    (insert-file-contents (locate-library "contexture-sessions.el" t))
    (let ((read 0))
      (while (re-search-forward "(plist-get session :\\([a-z-]+\\))" nil t)
        (cl-incf read)
        (should (member (match-string 1) contexture-sessions--fields)))
      (should (> read 20)))))

(ert-deftest contexture-sessions-starts-an-agent-without-a-shell ()
  (contexture-test-in-directory
   (lambda ()
     (let* ((file (expand-file-name "args"))
            (program (contexture-test-file
                      "agent" "#!/bin/sh"
                      (format "for it; do echo \"<$it>\"; done >%s; pwd >>%s; sleep 600"
                              file file)))
            (contexture-sessions-programs `(("claude" ,program "--resume" id "a b;$(c)"))))
       (set-file-modes program #o755)
       (unwind-protect
           (save-window-excursion
             (contexture-sessions--run (contexture-sessions-tests--entry))
             (llm-ert-wait-for
              (and (file-exists-p file)
                   (with-temp-buffer
                     (insert-file-contents file)
                     (equal (buffer-string)
                            (format "<--resume>\n<a-1>\n<a b;$(c)>\n%s\n"
                                    (directory-file-name
                                     (file-truename default-directory))))))))
         (when-let* ((buffer (get-buffer "*contexture: claude a-1*")))
           (set-process-query-on-exit-flag (get-buffer-process buffer) nil)
           (kill-buffer buffer)))))))

(ert-deftest contexture-sessions-asks-about-a-folder-that-only-a-recording-names ()
  (require 'term)
  (contexture-test-in-directory
   (lambda ()
     (let* ((elsewhere (file-name-as-directory (make-temp-file "ctx-elsewhere" t)))
            (inside (file-name-as-directory (expand-file-name "inside")))
            (root default-directory)
            (contexture-sessions-programs '(("claude" "sh" "--resume" id)))
            (project-find-functions
             (list (lambda (folder)
                     (and (file-in-directory-p folder root) (cons 'transient root)))))
            asked started)
       (make-directory inside)
       (unwind-protect
           (cl-letf (((symbol-function 'contexture--y-or-n-p)
                      (lambda (prompt) (push prompt asked) nil))
                     ((symbol-function 'make-term)
                      (lambda (&rest _) (push default-directory started) (throw 'started nil))))
             (pcase-dolist (`(,asks . ,session)
                            `((nil :told t :folder ,inside)
                              (nil :told nil :project ,elsewhere :folder ,elsewhere)
                              (t :told t :project ,elsewhere :folder ,elsewhere)
                              (t :told t :project ,elsewhere)
                              (t :told nil :folder ,elsewhere)))
               (setq asked nil started nil)
               (condition-case nil
                   (catch 'started
                     (contexture-sessions--run
                      (apply #'contexture-sessions-tests--entry session)))
                 (user-error nil))
               (should (eq asks (and asked t)))
               (should (eq asks (null started)))
               (when asked
                 (should (string-search (abbreviate-file-name elsewhere) (car asked))))))
         (delete-directory elsewhere))))))

(ert-deftest contexture-sessions-refuses-names-that-would-do-more ()
  (let (started)
    (cl-letf (((symbol-function 'make-term) (lambda (&rest args) (setq started args))))
      (dolist (id '("--dangerously-skip-permissions" "-x" "a b" "a/../b" "a\nb" "" nil "ä"))
        (should-error (contexture-sessions--run
                       (contexture-sessions-tests--entry :agent-session id))
                      :type 'user-error))
      (dolist (folder '("/ssh:host:/x" "/ssh:$(touch x)@h:/y" "/no/such/folder" "/x.tar/y"))
        (let ((tramp-mode t))
          (should-error (contexture-sessions--run
                         (contexture-sessions-tests--entry :folder folder))
                        :type 'user-error)))
      (should-error (contexture-sessions--run
                     (contexture-sessions-tests--entry :part-of "ses-0"))
                    :type 'user-error)
      (should-error (contexture-sessions--run
                     (contexture-sessions-tests--entry :agent "unknown"))
                    :type 'user-error))
    (should-not started)))

(ert-deftest contexture-sessions-goes-to-a-buffer-of-agent-shell ()
  (with-temp-buffer
    (setq-local agent-shell--state '((:session . ((:id . "a-1")))))
    (should (eq (contexture-sessions--agent-shell "a-1") (current-buffer)))
    (should-not (contexture-sessions--agent-shell "a-2"))))

(ert-deftest contexture-sessions-watches-files-only-while-it-is-open ()
  (contexture-sessions-tests--with
    (contexture-sessions-tests--record "one" "id-one" "one" "done")
    (contexture-sessions-tests--import)
    (contexture-sessions-tests--open)
    (contexture-sessions--watch (list (expand-file-name "records") "/ssh:host:/x"))
    (should (= 1 (length contexture-sessions--watches)))
    (contexture-sessions-tests--record "two" "id-two" "two" "done")
    ;; Without a terminal, events of files come only when input is read.
    (llm-ert-wait-for (progn (read-event nil nil 0.01)
                                    (member "two" (contexture-sessions-tests--titles))))
    (should (memq contexture-sessions--clock timer-list))
    (kill-buffer contexture-sessions-buffer)
    (should-not (memq contexture-sessions--clock timer-list))
    (should-not contexture-sessions--watches)))

(ert-deftest contexture-sessions-written-before-a-folder-is-watched-are-read ()
  (let ((folder (file-name-as-directory (make-temp-file "contexture" t)))
        (read nil))
    (unwind-protect
        (with-current-buffer (get-buffer-create contexture-sessions-buffer)
          (contexture-sessions-mode)
          (cl-letf (((symbol-function 'contexture-sessions--read-soon)
                     (lambda (file) (push file read))))
            ;; The folder is new; what was written since the import is not told by any event.
            (contexture-sessions--imported (list :folders (list folder)))
            (should (equal read '(t)))
            (contexture-sessions--imported
             (list :folders (list (directory-file-name folder))))
            (should (equal read '(t)))))
      (kill-buffer contexture-sessions-buffer)
      (delete-directory folder t))))

(ert-deftest contexture-sessions-collects-no-garbage-between-two-keys ()
  (with-temp-buffer
    (contexture-sessions-mode)
    (let ((gc-cons-threshold 800000))
      (cl-letf (((symbol-function 'read-from-minibuffer)
                 (lambda (&rest _)
                   (should (> gc-cons-threshold (* 32 1024 1024))))))
        (contexture-sessions-search)
        (should (= gc-cons-threshold 800000))))))

(defun contexture-sessions-tests--many (count)
  "Fill the list with COUNT sessions of five agents."
  (let ((now (truncate (float-time))))
    (dotimes (number count)
      (let ((id (format "ses-%d" number)))
        (puthash id (list :id id :session (format "title %d of the work" number)
                          :agent (nth (% number 5) '("claude" "codex" "gemini" "opencode" "pi"))
                          :project (format "/home/me/project-%d" (% number 40))
                          :tokens (* 10 number) :updated (- now (* 60 number))
                          :branch "main" :last-words (format "word%d and so on" number)
                          :part-of (and (= 7 (% number 10)) (format "ses-%d" (1- number)))
                          :state (if (= number 4000) :waiting :quiet))
                 contexture-sessions--all)))))

(ert-deftest contexture-sessions-all-have-a-place-whatever-recordings-say ()
  (with-temp-buffer
    (contexture-sessions-mode)
    (cl-flet ((ordered (&rest pairs)
                (clrhash contexture-sessions--all)
                (setq contexture-sessions--order nil)
                (cl-loop for (id . whole) in pairs for number from 1
                         do (puthash id (list :id id :session id :tokens 1 :updated (- number)
                                              :part-of whole)
                                     contexture-sessions--all))
                (mapcar (lambda (it) (cons (plist-get (car it) :id) (cdr it)))
                        (contexture-sessions--ordered))))
      (should (equal '(("a" . 0) ("b" . 1) ("e" . 2) ("c" . 1) ("d" . 0))
                     (ordered '("a") '("b" . "a") '("c" . "a") '("d" . "gone") '("e" . "b"))))
      ;; In a circle, and of itself.
      (should (equal '(("d" . 0) ("a" . 0) ("b" . 0) ("c" . 0) ("e" . 0))
                     (ordered '("a" . "b") '("b" . "a") '("c" . "c") '("d") '("e" . "b"))))
      ;; In a chain that has no end.
      (let ((chain (apply #'ordered (cl-loop for number below 3000
                                             collect (cons (format "s%d" number)
                                                           (format "s%d" (1- number)))))))
        (should (= 3000 (length chain)))
        (should (equal (cons "s2999" contexture-sessions--deepest) (car (last chain)))))
      (contexture-sessions--show))))

(ert-deftest contexture-sessions-of-many-are-shown-in-short-steps ()
  (with-temp-buffer
    (contexture-sessions-mode)
    (contexture-sessions-tests--many 5000)
    (contexture-sessions--show)
    (should (equal (car (contexture-sessions-tests--titles)) "title 4000 of the work"))
    ;; Only so many lines are made, however many sessions there are.
    (should (= (count-lines (point-min) (point-max)) (1+ contexture-sessions--lines)))
    (should (string-match-p "4,940 more" (buffer-string)))
    (contexture-sessions-show-more)
    (should (= (count-lines (point-min) (point-max)) (1+ (* 2 contexture-sessions--lines))))
    (setq contexture-sessions--query "word4321")
    (contexture-sessions--show)
    (should (equal (contexture-sessions-tests--titles) '("title 4321 of the work")))))

;;; Other machines

(defmacro contexture-sessions-tests--with-ssh (script &rest body)
  "Run BODY with a server, and SCRIPT in place of ssh."
  (declare (indent 1) (debug t))
  `(contexture-test-with-server
     (let* ((bin (expand-file-name "bin/"))
            (ssh (expand-file-name "ssh" bin))
            (process-environment
             (cons (format "PATH=%s:%s" bin (getenv "PATH")) process-environment))
            (contexture-sync-history nil))
       (make-directory bin t)
       (write-region (concat "#!/bin/sh\n" ,script "\n") nil ssh nil 'silent)
       (set-file-modes ssh #o755)
       ,@body)))

(defun contexture-sessions-tests--sync (host)
  "Exchange with HOST, and return the line that says how it ended."
  (let (said)
    (cl-letf (((symbol-function 'contexture--message)
               (lambda (format &rest args) (setq said (apply #'format format args)))))
      (contexture-sync host)
      (llm-ert-wait-for (and (not (process-live-p contexture-sync--process))
                             (not (string-prefix-p "Exchanging" said)))))
    said))

(ert-deftest contexture-sync-says-in-one-line-how-it-ended ()
  (contexture-sessions-tests--with-ssh
      "printf 'contexture-sync 1 {\"error\":\"not today\"}\\n'; cat >/dev/null"
    (should (equal (contexture-sessions-tests--sync "there")
                   "The exchange with there failed: there refused: not today"))
    (should-error (contexture-sync "-oProxyCommand=x") :type 'user-error)
    (should-error (contexture-sync " ") :type 'user-error)))

(ert-deftest contexture-sync-runs-by-itself-where-it-was-allowed ()
  (contexture-sessions-tests--with-ssh "echo >> asked; exec cat"
    (cl-flet ((opened (name)
                (let ((default-directory name)
                      (contexture-sync--process nil)
                      begun)
                  (cl-letf (((symbol-function 'make-process)
                             (lambda (&rest args) (setq begun (plist-get args :command)) nil))
                            ((symbol-function 'process-send-eof) #'ignore))
                    (contexture-sync--remote))
                  (car (last begun)))))
      (let ((contexture-sync-hosts '(("me@desk" . t) ("lap" . t) ("other" . nil)))
            (contexture-sync--times nil))
        (should (equal (opened "/ssh:me@desk:/x/") "me@desk"))
        (should-not (opened "/ssh:me@desk:/x/"))
        (should (equal (opened "/scp:lap:/") "lap"))
        (dolist (name '("/ssh:other:/" "/ssh:unknown:/" "/sudo:root@lap:/" "/ssh:lap#22:/"
                        "/ssh:a|sudo:lap:/" "/tmp/"))
          (setq contexture-sync--times nil)
          (should-not (opened name)))))
    ;; The answer is asked for once, and kept.
    (let ((contexture-sync-hosts nil)
          (default-directory "/ssh:lap:/")
          asked)
      (cl-letf (((symbol-function 'y-or-n-p) (lambda (_) (push t asked) nil))
                ((symbol-function 'customize-save-variable) #'set))
        (contexture-sync--allow "elsewhere")
        (should-not asked)
        (contexture-sync--allow "lap")
        (contexture-sync--allow "lap"))
      (should (equal asked '(t)))
      (should (equal contexture-sync-hosts '(("lap")))))))

(ert-deftest contexture-sync-runs-for-files-opened-before-the-server ()
  (contexture-test-with-state
    (contexture-disconnect)
    (let ((contexture-sync-hosts '(("lap" . t)))
          (contexture-sync--times nil)
          (here (current-buffer))
          begun)
      (with-temp-buffer
        (setq default-directory "/ssh:lap:/p/"
              buffer-file-name "/ssh:lap:/p/a.py")
        (cl-letf (((symbol-function 'contexture-sync) (lambda (host) (push host begun))))
          (with-current-buffer here
            (contexture-request 'ping)
            (llm-ert-wait-for begun)))
        (setq buffer-file-name nil))
      (should (equal begun '("lap"))))))

(ert-deftest contexture-sync-offers-the-hosts-of-ssh ()
  (contexture-test-in-directory
   (lambda ()
     (let ((process-environment (cons (concat "HOME=" llm-ert-directory) process-environment)))
       (should-not (contexture-sync--hosts))
       (make-directory "~/.ssh")
       (write-region "Host a b.example.org\n  User x\nhost *.c !d e\n" nil "~/.ssh/config"
                     nil 'silent)
       (should (equal (contexture-sync--hosts) '("a" "b.example.org" "e")))))))

(ert-deftest contexture-sessions-of-a-project-without-any-name-the-key-for-all ()
  (contexture-sessions-tests--with
    (contexture-sessions t)
    (llm-ert-wait-for (string-search "There is no session yet" (buffer-string)))
    (setq contexture-sessions--project "/p/app/")
    (contexture-sessions--show)
    (should (string-search "a shows those of all" (buffer-string)))
    (should (eq (key-binding "a") #'contexture-sessions-toggle-project))))

(ert-deftest contexture-sessions-say-from-which-machine-they-came ()
  (should (equal (contexture-sessions--place '(:machine "laptop" :project "/p/app/" :branch "main"))
                 "laptop: app main")))

(provide 'contexture-sessions-tests)
;;; contexture-sessions-tests.el ends here
