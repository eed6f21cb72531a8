;;; contexture-dashboard-tests.el --- Tests of the dashboard  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The dashboard and the account of a window, with a real server whose
;; clock stands still.  A batch Emacs draws nothing and so runs no hook
;; of windows; the tests run these where Emacs would.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-dashboard)

(defmacro contexture-dashboard-tests--with (&rest body)
  "Run BODY with a server of its own, whose clock stands still."
  (declare (indent 0) (debug t))
  `(let ((contexture-ert-server-command contexture-test-binary)
         (window-state-change-hook nil)
         (contexture-dashboard--pause 0.01))
     (contexture-ert-with-server
       :tokenizer nil
       (save-window-excursion
         (delete-other-windows)
         ,@body))))

(defun contexture-dashboard-tests--fill (name count)
  "Make the session NAME, in which COUNT messages were said."
  (contexture-request 'open-session (list :name name))
  (when (> count 0)
    (contexture-request
     'add-message
     (list :messages
           (cl-loop for number from 1 to count
                    collect
                    (list :role (if (cl-oddp number) :user :assistant)
                          :content (format "step %d about src/file%d.rs: %s" number number
                                           (apply #'concat (make-list 20 "word ")))))))))

(defun contexture-dashboard-tests--text ()
  "Return what the dashboard shows, with its header line."
  (with-current-buffer contexture-dashboard-buffer
    (concat header-line-format "\n"
            (buffer-substring-no-properties (point-min) (point-max)))))

(defmacro contexture-dashboard-tests--shows (regexp)
  "Wait until the dashboard shows what REGEXP matches."
  `(llm-ert-wait-for
       (string-match-p ,regexp (contexture-dashboard-tests--text))
     :message (concat "not shown: " ,regexp)))

(defun contexture-dashboard-tests--press (name)
  "Press the button NAME of the dashboard."
  (with-current-buffer contexture-dashboard-buffer
    (push-button (or (contexture-dashboard--find name)
                     (ert-fail (list 'no-button name))))))

(defun contexture-dashboard-tests--quiet ()
  "Wait until the dashboard has nothing more to ask."
  (llm-ert-wait-for
      (with-current-buffer contexture-dashboard-buffer
        (not (or contexture-dashboard--updating contexture-dashboard--timer))))
  (llm-ert-wait-for
      (cl-notany #'contexture-count--entry-stale
                 (hash-table-values contexture-count--entries)))
  (contexture-test-settle))

(defun contexture-dashboard-tests--timers ()
  "Return the timers of the dashboard."
  (cl-remove-if-not (lambda (timer)
                      (eq (timer--function timer) #'contexture-dashboard--pause-over))
                    timer-list))

(defun contexture-dashboard-tests--traces ()
  "Return what is left of a dashboard that listens."
  (append (contexture-dashboard-tests--timers)
          (cl-loop for (hook . function)
                   in '((contexture-notification-functions
                         . contexture-dashboard--changed)
                        (contexture-connected-hook . contexture-dashboard--connected)
                        (contexture-disconnected-hook
                         . contexture-dashboard--disconnected)
                        (window-state-change-hook
                         . contexture-dashboard--windows-changed))
                   when (memq function (symbol-value hook)) collect function)))

;;;; What it shows

(ert-deftest contexture-dashboard-without-a-session-offers-one ()
  (contexture-dashboard-tests--with
    (contexture-test-at-once (contexture-dashboard))
    (contexture-dashboard-tests--shows "\\` No conversation is open\nNo conversation with a model is open")
    (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) "work")))
      (contexture-dashboard-tests--press 'open))
    (contexture-dashboard-tests--shows "\\` Conversation work: idle")))

(ert-deftest contexture-dashboard-fits-a-terminal ()
  (dolist (text (list (contexture-dashboard--buttons '(:checkpoints t))
                      (contexture-dashboard--settings
                       '(:settings ((:name :auto-summarize :value t)
                                    (:name :max-tokens :value 8192)
                                    (:name :summarize-at-ratio :value 0.8)
                                    (:name :auto-checkpoint :value t)
                                    (:name :checkpoint-interval :value 10))))))
    (dolist (line (split-string text "\n"))
      (should (< (string-width line) 80)))))

(ert-deftest contexture-dashboard-names-the-contexts-of-the-items ()
  (should (equal (contexture-dashboard--managers
                  '((:manager "*shared*") (:manager "*session a*") (:manager "*session a*"))
                  nil)
                 "the shared context and the conversation's own context"))
  (should (equal (contexture-dashboard--managers nil '(:manager "*session a*"))
                 "the conversation's own context")))

(ert-deftest contexture-dashboard-shows-an-idle-session ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 0)
    (contexture-dashboard)
    (contexture-dashboard-tests--shows "Conversation work: idle")
    (contexture-dashboard-tests--shows "Messages   0  all are sent")
    (contexture-dashboard-tests--shows
     "To send    0 of 96,000 tokens (0 %), no messages, limit assumed")
    (contexture-dashboard-tests--shows "Items      0  0 tokens, in the conversation's own context")
    (contexture-request 'configure-session '(:model "gpt-4"))
    (contexture-dashboard-tests--shows "To send    0 of 4,192 tokens (0 %)")
    (contexture-dashboard-tests--shows "░\\{40\\} 0.0 %")
    (contexture-dashboard-tests--shows "None has been built")
    (contexture-dashboard-tests--shows "Turns to go back to\n  None yet")))

(ert-deftest contexture-dashboard-shows-an-active-session ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 10)
    (contexture-dashboard)
    (contexture-dashboard-tests--shows "Conversation work: active")
    (contexture-dashboard-tests--shows "Messages   10  all are sent")
    (contexture-dashboard-tests--shows "Turns      5")
    (should-not (string-match-p "80 %" (contexture-dashboard-tests--text)))))

(ert-deftest contexture-dashboard-warns-above-80-percent ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 0)
    (contexture-request 'configure-session '(:model "gpt-4-32k"))
    (contexture-request 'add-message
                        (list :content (apply #'concat (make-list 27000 " word"))))
    (contexture-dashboard)
    (contexture-dashboard-tests--shows "Conversation work: warning")
    (contexture-dashboard-tests--shows "! The history has .* tokens, more than 80 % of the model")
    (contexture-dashboard-tests--shows "█\\{38\\}░\\{2\\} 93\\.[0-9] %")
    (with-current-buffer contexture-dashboard-buffer
      (goto-char (point-min))
      (search-forward "█")
      (should (eq (get-text-property (1- (point)) 'face) 'contexture-conversation-warning)))))

(ert-deftest contexture-dashboard-names-the-limit-that-is-assumed ()
  (let ((stats '(:needs-pruning t :tokens 84584 :limit 100000)))
    (should (string-search "84,584 tokens, more than 80 % of 100,000, the limit assumed"
                           (contexture-dashboard--warning stats)))
    (should (string-search "84,584 tokens, more than 80 % of the model's 100,000: shorten"
                           (contexture-dashboard--warning `(:model-known t ,@stats))))
    (should (equal (contexture-dashboard--warning '(:tokens 10 :limit 100000)) ""))))

(ert-deftest contexture-dashboard-bar-has-letters-where-there-are-no-blocks ()
  (cl-letf (((symbol-function 'char-displayable-p) #'ignore))
    (should (equal (substring-no-properties
                    (contexture-dashboard--bar 50.0 'contexture-dashboard-bar))
                   (concat (make-string 20 ?#) (make-string 20 ?-)))))
  (dolist (case '((0 . 0) (0.01 . 1) (100 . 40) (250.0 . 40)))
    (should (= (cdr case)
               (cl-count ?█ (contexture-dashboard--bar (car case) 'default))))))

(ert-deftest contexture-dashboard-says-nothing-of-the-inner-parts ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 4)
    (contexture-request 'build-context '(:max-tokens 600 :brief t))
    (contexture-dashboard)
    (contexture-dashboard-tests--shows "^Last windows")
    (contexture-explain)
    (llm-ert-wait-for (get-buffer contexture-explain-buffer))
    (dolist (buffer (list contexture-dashboard-buffer contexture-explain-buffer))
      (with-current-buffer buffer
        (goto-char (point-min))
        (let ((case-fold-search t))
          (should-not (re-search-forward
                       "\\<\\(?:manager\\|capacity\\|origin\\|tiered\\|quality\\|phase\\|ledger\\|layer\\)"
                       nil t)))))))

(ert-deftest contexture-dashboard-leaves-out-items-that-are-sent-in-others ()
  (let ((text (contexture-dashboard--section
               '(:section :context-items :before 30 :after 30) nil
               '((:id "ctx-1" :metadata (:filename "/whole") :tokens 30)
                 (:id "ctx-2" :metadata (:filename "/part") :tokens 7 :covered-by "ctx-1")))))
    (should (string-search "/whole" text))
    (should-not (string-search "/part" text))))

(ert-deftest contexture-dashboard-shows-sections-and-items-of-the-last-window ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 20)
    (contexture-request 'add-context
                        '(:manager "*session 1*" :content "(defun foo ())"
                          :metadata (:filename "/src/foo.el" :start-line 3 :end-line 4)))
    (contexture-request 'build-context '(:max-tokens 500 :brief t
                                         :sections (:system-prompt "Be terse.")))
    (contexture-dashboard)
    (contexture-dashboard-tests--shows
     "Last window  [0-9]+ of 500 tokens ([0-9]+ %), 11 of 20 messages sent; [0-9]+ offered; [0-9]")
    (contexture-dashboard-tests--shows "  instructions +[0-9]+ +[0-9]+\n")
    (contexture-dashboard-tests--shows
     "  items +[0-9]+ +[0-9]+\n    /src/foo.el:3-4 +[0-9]+ +an item")
    (contexture-dashboard-tests--shows "  messages +[0-9]+ +[0-9]+\n    msg-")
    (contexture-dashboard-tests--shows
     "Last windows  in tokens\n  Built +Tokens +Allowed +Messages\n  [0-9]")
    (contexture-dashboard-tests--shows "Items      1  [0-9]+ tokens, in the conversation's own")))

(ert-deftest contexture-dashboard-of-1000-messages-is-quick ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "long" 1000)
    (contexture-request 'build-context '(:max-tokens 5000 :brief t))
    (contexture-test-at-once (contexture-dashboard))
    (contexture-dashboard-tests--shows "Messages   1,000")
    (with-current-buffer contexture-dashboard-buffer
      (let ((data contexture-dashboard--data))
        (contexture-test-at-once (contexture-dashboard--text data))
        (should (< (count-lines (point-min) (point-max)) 80))))))

(ert-deftest contexture-dashboard-shows-names-of-any-script ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "100% Überblick 会話 🎉" 2)
    (contexture-request 'checkpoint '(:message "vor dem Größten"))
    (contexture-dashboard)
    (contexture-dashboard-tests--shows "Conversation 100%% Überblick 会話 🎉: active")
    (contexture-dashboard-tests--shows "turn [0-9] .*vor dem Größten")))

;;;; That it follows

(ert-deftest contexture-dashboard-follows-every-change ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 0)
    (contexture-dashboard)
    (contexture-dashboard-tests--shows "Messages   0")
    (contexture-request 'add-message '(:content "hello"))
    (contexture-dashboard-tests--shows "Messages   1")
    (contexture-request 'process-turn '(:content "hello again"))
    (contexture-dashboard-tests--shows "Messages   2")
    (contexture-request 'checkpoint '(:message "here"))
    (contexture-dashboard-tests--shows "turn [0-9]")
    (contexture-request 'build-context '(:brief t))
    (contexture-dashboard-tests--shows "Last window  [0-9]+ of 96,000")
    (contexture-request 'configure-session '(:session "work" :name "play"))
    (contexture-dashboard-tests--shows "Conversation play")
    (contexture-request 'add-context '(:manager "*session 1*" :content "item"))
    (contexture-dashboard-tests--shows "Items      1")
    (contexture-request 'rollback)
    (contexture-dashboard-tests--shows "Turns      2")))

(ert-deftest contexture-dashboard-follows-what-others-do ()
  (llm-ert-with-files nil
    (let ((contexture-ert-server-command contexture-test-binary)
          (window-state-change-hook nil) other)
      (contexture-ert-with-server
        :tokenizer nil
        :state (concat llm-ert-directory "state")
        (save-window-excursion
          (contexture-request 'open-session '(:name "work"))
          (contexture-dashboard)
          (contexture-dashboard-tests--shows "Messages   0")
          (contexture-test-as-other-emacs other
            (contexture-request 'add-message '(:session "work" :content "hi")))
          (contexture-dashboard-tests--shows "Messages   1")
          (contexture-test-as-other-emacs other (contexture-disconnect)))))))

;; `build-context' once announced a changed session, and so a client that
;; built a window whenever something changed did so for ever.
(ert-deftest contexture-dashboard-and-a-client-that-redraws-come-to-rest ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 2)
    (contexture-dashboard)
    (contexture-dashboard-tests--shows "Messages   2")
    (let* ((built 0) (marked nil) told
           (redraw (lambda (method params)
                     (if (equal (plist-get params :manager) "mark")
                         (setq marked t)
                       (push method told)
                       (cl-incf built)
                       (when (< built 20)
                         (contexture-request-async 'build-context '(:brief t)))))))
      (unwind-protect
          (progn
            (contexture-watch redraw '(session-changed window-built))
            (contexture-request 'add-message '(:content "hello"))
            (contexture-dashboard-tests--shows "Messages   3")
            (llm-ert-wait-for (memq 'window-built told))
            (dotimes (_ 3) ; each answer is one more round of whatever is going on
              (contexture-request 'build-context '(:brief t)))
            (contexture-request 'add-context '(:manager "mark" :content "x"))
            (llm-ert-wait-for marked)
            (should (equal (delete-dups told) '(window-built session-changed)))
            (should (= built 2)))
        (contexture-unwatch redraw)))))

(ert-deftest contexture-dashboard-follows-the-current-session ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "one" 1)
    (contexture-dashboard-tests--fill "two" 2)
    (contexture-dashboard)
    (contexture-dashboard-tests--shows "Conversation two")
    (contexture-conversation-make-current "one")
    (contexture-dashboard-tests--shows "Conversation one")
    (contexture-request 'open-session '(:name "three"))
    (contexture-dashboard-tests--shows "Conversation three: idle")
    (contexture-request 'delete-session '(:session "three"))
    (contexture-dashboard-tests--shows "Conversation \\(one\\|two\\)\\|No conversation")))

(ert-deftest contexture-dashboard-keeps-a-chosen-session ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "one" 1)
    (contexture-dashboard-tests--fill "two" 2)
    (contexture-dashboard "ses-1")
    (contexture-dashboard-tests--shows "Conversation one")
    (contexture-request 'open-session '(:name "three"))
    (contexture-request 'add-message '(:session "ses-1" :content "more"))
    (contexture-dashboard-tests--shows "Conversation one: active\nMessages   2")
    (contexture-request 'delete-session '(:session "ses-1"))
    (contexture-dashboard-tests--shows "This conversation was deleted\n.*you can bring it back whole")
    (contexture-request 'delete-session '(:session "ses-1" :deleted :false))
    (contexture-dashboard-tests--shows "Conversation one: active\nMessages   2")
    (contexture-request 'delete-session '(:session "ses-1"))
    (contexture-dashboard-tests--shows "This conversation was deleted")
    (contexture-dashboard-tests--press 'follow)
    (contexture-dashboard-tests--shows "Conversation three")
    (with-current-buffer contexture-dashboard-buffer
      (contexture-dashboard-switch "ses-2"))
    (contexture-dashboard-tests--shows "Conversation two")))

(ert-deftest contexture-dashboard-asks-little-in-a-burst ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 0)
    (contexture-dashboard)
    (contexture-dashboard-tests--quiet)
    (let ((before (length (llm-ert-calls 'session-report)))
          (contexture-dashboard--pause 1000)) ; however long the burst takes
      (dotimes (_ 100)
        (contexture-request 'add-message '(:content "hello")))
      (contexture-test-settle)
      (should (< (- (length (llm-ert-calls 'session-report)) before) 5))
      (mapc #'cancel-timer (contexture-dashboard-tests--timers))
      (contexture-dashboard--pause-over (get-buffer contexture-dashboard-buffer))
      (contexture-dashboard-tests--shows "Messages   100"))))

(ert-deftest contexture-dashboard-does-nothing-while-nothing-happens ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 3)
    (contexture-dashboard)
    (contexture-dashboard-tests--quiet)
    (let ((calls (length (llm-ert-calls))))
      (accept-process-output nil 0.3)
      (should (= calls (length (llm-ert-calls))))
      (should-not (contexture-dashboard-tests--timers)))))

(defun contexture-dashboard-tests--show-checkpoint ()
  "Show the dashboard of a session with three messages and a checkpoint."
  (contexture-dashboard-tests--fill "work" 3)
  (contexture-request 'checkpoint '(:message "one"))
  (contexture-dashboard)
  (contexture-dashboard-tests--shows "turn [0-9]"))

(ert-deftest contexture-dashboard-leaves-point-where-it-is ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--show-checkpoint)
    (with-current-buffer contexture-dashboard-buffer
      (goto-char (contexture-dashboard--find "chk-1")))
    (contexture-request 'checkpoint '(:message "two"))
    (contexture-dashboard-tests--shows "  two$")
    (with-current-buffer contexture-dashboard-buffer
      (should (looking-at "turn [0-9]"))
      (should (= (point) (window-point (get-buffer-window)))))))

;;;; Sections that fold

(defun contexture-dashboard-tests--headings (predicate)
  "Return the lines of this buffer for which PREDICATE is true."
  (save-excursion
    (goto-char (point-min))
    (cl-loop until (eobp)
             when (funcall predicate)
             collect (buffer-substring-no-properties (point) (line-end-position))
             do (forward-line))))

(defun contexture-dashboard-tests--type (key)
  "Do what KEY does at point."
  (call-interactively (key-binding (kbd key))))

(ert-deftest contexture-dashboard-headings-are-those-of-the-outline ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 3)
    (contexture-request 'build-context '(:max-tokens 600 :brief t))
    (contexture-request 'configure-session '(:manage t :template "freeform-chat"))
    (contexture-request 'initialize '(:agent (:name "claude-code" :version "1")))
    (contexture-dashboard)
    (contexture-dashboard-tests--shows "^Agents")
    (with-current-buffer contexture-dashboard-buffer
      (let ((headings (contexture-dashboard-tests--headings #'outline-on-heading-p)))
        (should (equal headings
                       (contexture-dashboard-tests--headings
                        (lambda () (get-text-property (point) 'contexture-section)))))
        (should (equal (mapcar (lambda (it) (replace-regexp-in-string "  .*" "" it)) headings)
                       '("Last window" "Notes" "Turns to go back to" "Last windows"
                         "Agents")))))))

(ert-deftest contexture-dashboard-keeps-what-is-folded-and-point ()
  (contexture-dashboard-tests--with
    (contexture-request 'initialize '(:agent (:name "claude-code" :version "1")))
    (contexture-dashboard-tests--show-checkpoint)
    (contexture-dashboard-tests--shows "^Agents")
    (with-current-buffer contexture-dashboard-buffer
      (goto-char (point-min))
      (re-search-forward "^Turns to go back to")
      (beginning-of-line)
      (contexture-dashboard-tests--type "TAB")
      (should (invisible-p (contexture-dashboard--find "chk-1")))
      (contexture-dashboard-tests--type "M-p")
      (should (looking-at "Last window"))
      (goto-char (point-min))
      (re-search-forward "^Agents")
      (forward-line 1)
      (move-to-column 4))
    (contexture-request 'build-context '(:max-tokens 600 :brief t))
    (contexture-request 'checkpoint '(:message "two"))
    (contexture-dashboard-tests--shows "  two$")
    (contexture-dashboard-tests--shows "^Last windows")
    (with-current-buffer contexture-dashboard-buffer
      (should (equal (contexture-dashboard--folded) '(Turns\ to\ go\ back\ to)))
      (should (invisible-p (contexture-dashboard--find "chk-2")))
      (should (= (current-column) 4))
      (forward-line -1)
      (should (looking-at "Agents"))
      ;; From button to button leaves out what is folded.
      (goto-char (contexture-dashboard--find 'transcript))
      (contexture-dashboard-next)
      (should-not (invisible-p (point)))
      (should (looking-at "\\[Leave"))
      (re-search-forward "^Turns to go back to")
      (beginning-of-line)
      (contexture-dashboard-tests--type "TAB")
      (should-not (contexture-dashboard--folded))
      (contexture-dashboard-tests--type "<backtab>")
      (should (equal (length (contexture-dashboard--folded)) 4)))))

;;;; That it stops

(ert-deftest contexture-dashboard-hidden-hears-nothing ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 1)
    (contexture-dashboard)
    (contexture-dashboard-tests--quiet)
    (run-hooks 'window-state-change-hook)
    (should (contexture-dashboard--following-p)) ; it is shown
    (switch-to-buffer "*scratch*")
    (delete-other-windows)
    (run-hooks 'window-state-change-hook)
    (should-not (contexture-dashboard-tests--traces))
    (contexture-test-settle)
    (should (equal (car (last (llm-ert-calls 'subscribe))) '(:topics nil)))
    (let ((calls (length (llm-ert-calls 'context-stats))))
      (contexture-request 'add-message '(:session "work" :content "unseen"))
      (contexture-test-settle)
      (should (= calls (length (llm-ert-calls 'context-stats)))))))

(ert-deftest contexture-dashboard-shown-again-is-up-to-date ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 1)
    (contexture-dashboard)
    (contexture-dashboard-tests--shows "Messages   1")
    (switch-to-buffer "*scratch*")
    (delete-other-windows)
    (run-hooks 'window-state-change-hook)
    (contexture-request 'add-message '(:session "work" :content "unseen"))
    (switch-to-buffer contexture-dashboard-buffer)
    (with-current-buffer contexture-dashboard-buffer
      (run-hook-with-args 'window-buffer-change-functions (selected-window)))
    (contexture-dashboard-tests--shows "Messages   2")
    (contexture-request 'add-message '(:session "work" :content "seen"))
    (contexture-dashboard-tests--shows "Messages   3")))

(ert-deftest contexture-dashboard-killed-leaves-nothing ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 1)
    (let ((processes (process-list)))
      (contexture-dashboard)
      (contexture-request 'add-message '(:content "a"))
      (kill-buffer contexture-dashboard-buffer)
      (should-not (contexture-dashboard-tests--traces))
      (contexture-request 'add-message '(:content "b"))
      (contexture-test-settle) ; answers that are for it find nobody
      (should-not (contexture-dashboard-tests--traces))
      (should-not (get-buffer contexture-dashboard-buffer))
      (should (equal processes (process-list))))))

(ert-deftest contexture-dashboard-killed-in-its-pause-leaves-no-timer ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 1)
    (let ((contexture-dashboard--pause 60))
      (contexture-dashboard)
      (contexture-dashboard-tests--shows "Messages   1")
      (contexture-request 'add-message '(:content "a"))
      (llm-ert-wait-for (contexture-dashboard-tests--timers))
      (kill-buffer contexture-dashboard-buffer)
      (should-not (contexture-dashboard-tests--timers)))))

(ert-deftest contexture-dashboard-of-another-mode-leaves-nothing ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 1)
    (contexture-dashboard)
    (with-current-buffer contexture-dashboard-buffer (fundamental-mode))
    (should-not (contexture-dashboard-tests--traces))))

(ert-deftest contexture-dashboard-comes-through-a-death-of-the-server ()
  (llm-ert-with-files nil
    (let ((contexture-ert-server-command contexture-test-binary)
          (window-state-change-hook nil))
      (contexture-ert-with-server
        :tokenizer nil
        :state (concat llm-ert-directory "state")
        (save-window-excursion
          (contexture-dashboard-tests--fill "work" 2)
          (contexture-dashboard)
          (contexture-dashboard-tests--shows "Messages   2")
          (contexture-dashboard-tests--quiet)
          (contexture-ert-kill-server t)
          (contexture-request 'add-message '(:session "work" :content "after"))
          (contexture-dashboard-tests--shows "Messages   3"))))))

(ert-deftest contexture-dashboard-does-not-wait-for-a-stopped-server ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 2)
    (contexture-dashboard)
    (contexture-dashboard-tests--shows "Messages   2")
    (contexture-dashboard-tests--quiet)
    (contexture-ert-with-stopped-server
      (contexture-test-at-once
        (with-current-buffer contexture-dashboard-buffer
          (revert-buffer)
          (contexture-conversation-leave-out)))
      (contexture-test-message "Waiting for the Contexture server"
        (with-current-buffer contexture-dashboard-buffer (revert-buffer))))
    (contexture-dashboard-tests--quiet)
    (contexture-dashboard-tests--shows "Conversation work: active\nMessages   2")))

(ert-deftest contexture-dashboard-says-that-it-is-disconnected ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 2)
    (contexture-dashboard)
    (contexture-dashboard-tests--shows "Messages   2")
    (contexture-disconnect)
    (contexture-dashboard-tests--shows "Conversation work: active  (the server cannot be reached)")
    (accept-process-output nil 0.1)
    (should-not contexture--connection))) ; it starts no server by itself

;;;; Its buttons

(ert-deftest contexture-dashboard-buttons-prune-and-undo ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 20)
    (contexture-dashboard)
    (contexture-dashboard-tests--shows "Messages   20  all are sent")
    (with-current-buffer contexture-dashboard-buffer (contexture-conversation-leave-out 200))
    (contexture-dashboard-tests--shows "Messages   [0-9]+ of 20  are sent, [0-9]+ left out")
    (contexture-dashboard-tests--press 'undo)
    (contexture-dashboard-tests--shows "Messages   20  all are sent")
    (contexture-test-message "Nothing to leave out" (contexture-dashboard-tests--press 'prune))))

(ert-deftest contexture-dashboard-buttons-summarize ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 60)
    (contexture-dashboard)
    (contexture-dashboard-tests--shows "Messages   60")
    (contexture-test-message "Shortened" (contexture-dashboard-tests--press 'summarize))
    (contexture-dashboard-tests--shows "Messages   [0-9]+ of 60  are sent, [0-9]+ shortened")))

(ert-deftest contexture-dashboard-buttons-take-checkpoints-and-roll-back ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 4)
    (contexture-dashboard)
    (contexture-dashboard-tests--shows "Turns      2")
    (should-not (with-current-buffer contexture-dashboard-buffer
                  (contexture-dashboard--find 'rollback)))
    (cl-letf (((symbol-function 'read-string) (lambda (&rest _) "the storm")))
      (contexture-dashboard-tests--press 'checkpoint))
    (contexture-dashboard-tests--shows "turn 2 .*the storm")
    (contexture-dashboard-tests--fill "work" 2)
    (contexture-dashboard-tests--shows "Turns      3")
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_ table &rest _) (car (all-completions "" table)))))
      (contexture-test-message "went back: 1 turn, 2 messages taken back"
        (contexture-dashboard-tests--press "chk-1")))
    (contexture-dashboard-tests--shows "Turns      2")))

(ert-deftest contexture-dashboard-keys-go-from-button-to-button ()
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "work" 4)
    (contexture-dashboard)
    (contexture-dashboard-tests--shows "Leave out")
    (with-current-buffer contexture-dashboard-buffer
      (goto-char (point-min))
      (contexture-test-user-error "no button here" (contexture-dashboard-act))
      (contexture-dashboard-next)
      (should (looking-at "\\[Leave out\\]"))
      (contexture-dashboard-next)
      (should (looking-at "\\[Shorten\\]"))
      (contexture-dashboard-previous)
      (should (looking-at "\\[Leave out\\]"))
      (contexture-test-message "Nothing to leave out" (contexture-dashboard-act))
      (contexture-test-user-error "no turn to go back to yet" (contexture-dashboard-go-back))
      (dolist (key '("g" "n" "p" "q" "RET" "?"))
        (should (commandp (key-binding (kbd key))))))))

(ert-deftest contexture-dashboard-opens-in-a-browser ()
  "Each call opens a new address of one program, which serves what Emacs has."
  (contexture-dashboard-tests--with
    (contexture-dashboard-tests--fill "in the browser" 2)
    (let ((contexture-dashboard--program nil)
          (opened nil))
      (unwind-protect
          (cl-letf (((symbol-function 'browse-url) (lambda (url &rest _) (push url opened))))
            (contexture-dashboard-browse)
            (llm-ert-wait-for opened)
            (let ((program contexture-dashboard--program))
              (contexture-dashboard-browse)
              (llm-ert-wait-for (cdr opened))
              (should (eq program contexture-dashboard--program)))
            (should (= 2 (length (delete-dups (copy-sequence opened)))))
            (dolist (url opened)
              (should (string-match-p "\\`http://127\\.0\\.0\\.1:[0-9]+/\\?token=[0-9a-f]+\\'" url)))
            ;; What the program says besides is not opened.
            (contexture-dashboard--browse-line contexture-dashboard--program "javascript:x\nhttp")
            (contexture-dashboard--browse-line contexture-dashboard--program "://a/b\n")
            (should (equal (car opened) "http://a/b"))
            (should (= 3 (length opened))))
        (when contexture-dashboard--program
          (set-process-sentinel contexture-dashboard--program #'ignore)
          (delete-process contexture-dashboard--program))))))

(provide 'contexture-dashboard-tests)
;;; contexture-dashboard-tests.el ends here
